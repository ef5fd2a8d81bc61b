"""A proxy in front of the API server, with which a test can cut, refuse or delay connections."""

import select
import socket
import threading


class Door:
    def __init__(self, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = True
        self.passed = 0  # connections that came through
        self.passing = threading.Event()  # clear: what comes is held up
        self.passing.set()
        self.lock = threading.Lock()
        self.pairs = set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                is_open = self.open
            if not is_open:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            except OSError:
                client.close()
                continue
            with self.lock:
                self.passed += 1
                self.pairs.add((client, server))
            threading.Thread(target=self.carry, args=(client, server), daemon=True).start()

    def carry(self, client, server):
        try:
            while True:
                for one in select.select([client, server], [], [])[0]:
                    self.passing.wait()
                    data = one.recv(65536)
                    if not data:
                        return
                    (server if one is client else client).sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.pairs.discard((client, server))
            client.close()
            server.close()

    def cut(self):
        """Ends the connections that are there."""
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            for one in pair:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def shut(self):
        with self.lock:
            self.open = False
        self.cut()

    def unshut(self):
        with self.lock:
            self.open = True

    def close(self):
        self.passing.set()
        self.listener.close()
        self.cut()
