"""A TCP proxy in front of the API server, with which a test can cut, refuse or delay connections."""

import select
import socket
import threading


class ApiProxy:
    def __init__(self, port):
        """`port`: of the API server, on loopback. `self.port`: of the proxy."""
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_open = True
        self.passed = 0  # connections that were accepted and forwarded
        self.passing = threading.Event()  # while clear, data is held back
        self.passing.set()
        self.lock = threading.Lock()
        self.pairs = set()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                is_open = self.is_open
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
            threading.Thread(target=self.forward, args=(client, server), daemon=True).start()

    def forward(self, client, server):
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
        """Closes the existing connections; new ones are still accepted."""
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            for one in pair:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def refuse(self):
        """Refuses new connections, and cuts the existing ones."""
        with self.lock:
            self.is_open = False
        self.cut()

    def accept(self):
        """Accepts connections again."""
        with self.lock:
            self.is_open = True

    def close(self):
        self.passing.set()
        self.listener.close()
        self.cut()
