"""A server that accepts connections, reads what comes, and never answers: a scoring API that hangs."""

import selectors
import socket
import threading


class Server:
    """On a free port of 127.0.0.1, with a thread of its own."""

    def __init__(self):
        self.connections = 0  # open ones
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.stop, stopped = socket.socketpair()
        for waited_for in (self.listener, stopped):
            self.selector.register(waited_for, selectors.EVENT_READ)
        self.stopped = stopped
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.close()
        self.thread.join()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.stopped:
                    self.close()
                    return
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.read(key.fileobj)

    def accept(self):
        connection, _ = self.listener.accept()
        connection.setblocking(False)
        self.selector.register(connection, selectors.EVENT_READ)
        self.connections += 1

    def read(self, connection):
        try:
            if connection.recv(1 << 16):
                return
        except ConnectionError:
            pass
        self.selector.unregister(connection)
        connection.close()
        self.connections -= 1

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
