"""A stand-in for Skupper: gives a TCP service another name and port, and goes away in the ways that Skupper's router
does."""

import contextlib
import socket
import struct
import threading

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: no orderly end


class Link:
    """To localhost:`port` from a port of its own.

    up(): passes everything. refuse(): no listener, and open connections are reset (the Service has no pod).
    drop(): accepts connections and closes them (the router has no one on the other side). stall(): accepts them and
    passes nothing (the network between the sites is gone). mute(): passes requests, holds back the answers."""

    def __init__(self, port):
        self.target, self.port = port, 0
        self.lock = threading.Lock()
        self.pairs, self.mode, self.listener = [], None, None
        self.passed, self.held = 0, 0  # bytes to the service; of answers that were held back
        self.up()

    def url(self, path=""):
        """By a name that is not the service's own."""
        return f"http://localhost:{self.port}{path}"

    def up(self):
        self.enter("up")

    def refuse(self):
        self.enter("refuse")

    def drop(self):
        self.enter("drop")

    def stall(self):
        self.enter("stall")

    def mute(self):
        self.enter("mute")

    def enter(self, mode):
        """Connections of the mode before end with it, except by mute(), for those that are being used."""
        with self.lock:
            before, self.mode = self.mode, mode
            if (before, mode) != ("up", "mute") and mode != "stall":
                self.reset_all()
            if mode == "refuse":
                self.close()
            elif not self.listener:
                self.listen()

    def listen(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
            self.listener.close()
            self.listener = None

    def reset_all(self):
        for pair in self.pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    end.shutdown(socket.SHUT_RDWR)
                    end.close()
        self.pairs = []

    def accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                client = listener.accept()[0]
                with self.lock:
                    self.welcome(client)

    def welcome(self, client):
        if self.mode in ("drop", "refuse"):  # it may have been accepted just before
            client.close()
            return
        service = socket.create_connection(("127.0.0.1", self.target), 10)
        service.settimeout(None)
        self.pairs.append((client, service))
        for words in ((client, service, True), (service, client, False)):
            threading.Thread(target=self.pump, args=words, daemon=True).start()

    def pump(self, source, sink, forth):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.mode == "mute" and not forth:
                    self.held += len(data)
                elif self.mode != "stall":
                    sink.sendall(data)
                    self.passed += len(data) if forth else 0
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.lock:
            self.close()
            self.reset_all()
