"""What leads a Pod to one of several API servers, as the Service `kubernetes` does."""

import contextlib
import socket
import threading

PIECE_BYTES = 1 << 16


class Forwarder:
    """Takes connections at a port of its own; any thread may steer it."""

    def __init__(self, address, ports):
        self.address = address
        self.ports = ports
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.target = ports[0]
        self.flows = threading.Event()
        self.flows.set()
        self.lock = threading.Lock()
        self.open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def lead_to(self, number):
        """Of the servers; new connections go there."""
        self.target = self.ports[number]

    def stall(self):
        """What comes from servers stays here, and connections stay."""
        self.flows.clear()

    def cut(self):
        """All connections, with what stayed here; new ones flow."""
        with self.lock:
            for each in self.open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self.flows.set()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            try:
                upstream = socket.create_connection((self.address, self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.open |= {client, upstream}
            for pump in ((client, upstream, False), (upstream, client, True)):
                threading.Thread(target=self._pump, args=pump, daemon=True).start()

    def _pump(self, source, sink, may_stall):
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE_BYTES):
                if may_stall:
                    self.flows.wait()
                sink.sendall(piece)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.open.remove(source)
        source.close()
