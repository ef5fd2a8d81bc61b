import ctypes
import multiprocessing
import subprocess
import threading


def square(x):
    return x * x


if __name__ == "__main__":
    threads = [threading.Thread(target=square, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, range(5)))
    print(ctypes.CDLL(None).strlen(b"four"))
    print(subprocess.run(["sh", "-c", "echo child"], stdout=subprocess.PIPE, check=True).stdout)
