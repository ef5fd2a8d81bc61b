"""Plays the kubelet in the device plugin protocol, with gRPC's own library: it accepts registrations, calls the plugin
back before it answers, and watches its devices. It encodes and decodes messages by their field numbers (v1beta1,
api.proto), so that it shares no code with the tested program."""

import pathlib
import threading
import time
from concurrent import futures

import pytest
from machines import wait_until
from engines import field

grpc = pytest.importorskip("grpc")

SERVICE = "/v1beta1.DevicePlugin/"
PATIENCE = 20


def take_apart(data):
    """Decodes a protobuf message to [(field number, bytes or integer)]."""
    def varint(at):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    fields, at = [], 0
    while at < len(data):
        key, at = varint(at)
        value, at = varint(at)
        assert key & 7 in (0, 2), f"field {key >> 3} of kind {key & 7}"
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        fields.append((key >> 3, value))
    return fields


def all_of(fields, number):
    return [value for found, value in fields if found == number]


def text_of(fields, number):
    return (all_of(fields, number) or [b""])[-1].decode()


def names(number, ids):
    return b"".join(field(number, name) for name in ids)


class Answer:
    """The decoded answer for one container: its environment, mounts and devices."""

    def __init__(self, data):
        fields = take_apart(data)
        self.env, self.mounts, self.devices = {}, [], []
        for pair in map(take_apart, all_of(fields, 1)):
            assert text_of(pair, 1) not in self.env
            self.env[text_of(pair, 1)] = text_of(pair, 2)
        for mount in map(take_apart, all_of(fields, 2)):
            self.mounts.append((text_of(mount, 1), text_of(mount, 2), bool(all_of(mount, 3))))
        for device in map(take_apart, all_of(fields, 3)):
            self.devices.append((text_of(device, 1), text_of(device, 2), text_of(device, 3)))
        assert all(number in (1, 2, 3) for number, _ in fields)


class Plugin:
    """A connection to the plugin's socket, and its calls. `authority`: the name that older kubelets send for the socket."""

    def __init__(self, path, authority=None):
        options = [("grpc.default_authority", authority)] if authority else []
        self.channel = grpc.insecure_channel(f"unix:{path}", options)

    def call(self, method, message=b"", timeout=PATIENCE):
        return self.channel.unary_unary(SERVICE + method)(message, timeout=timeout)

    def options(self):
        fields = take_apart(self.call("GetDevicePluginOptions"))
        return {number: value for number, value in fields}

    def prefer(self, available, size, must=()):
        request = names(1, available) + names(2, must) + field(3, size)
        answers = all_of(take_apart(self.call("GetPreferredAllocation", field(1, request))), 1)
        assert len(answers) == 1
        return [name.decode() for name in all_of(take_apart(answers[0]), 1)]

    def allocate(self, *containers):
        request = b"".join(field(1, names(1, ids)) for ids in containers)
        return [Answer(answer) for answer in all_of(take_apart(self.call("Allocate", request)), 1)]

    def refused(self, *containers):
        """Returns the error of an Allocate that must fail."""
        with pytest.raises(grpc.RpcError) as raised:
            self.allocate(*containers)
        return raised.value

    def watch(self):
        return Watch(self)

    def close(self):
        self.channel.close()


def numa_of(device):
    """Returns the NUMA nodes of a device's topology, or None if it has no topology."""
    topologies = [take_apart(topology) for topology in all_of(device, 3)]
    assert len(topologies) <= 1
    # protobuf omits the field of node number 0.
    return [next((n for _, n in take_apart(node)), 0) for node in all_of(topologies[0], 1)] \
        if topologies else None


class Watch:
    """A ListAndWatch stream. `lists` has all lists received so far, each as {device: "Healthy" or "Unhealthy"}."""

    def __init__(self, plugin):
        self.lists, self.error = [], None
        self.numa = {}      # {device: its NUMA nodes} of the last list
        self.stream = plugin.channel.unary_stream(SERVICE + "ListAndWatch")(b"")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        try:
            for message in self.stream:
                devices = list(map(take_apart, all_of(take_apart(message), 1)))
                self.numa = {text_of(d, 1): numa_of(d) for d in devices}
                self.lists.append({text_of(d, 1): text_of(d, 2) for d in devices})
        except grpc.RpcError as error:
            self.error = error

    @property
    def last(self):
        return self.lists[-1] if self.lists else None

    def cancel(self):
        self.stream.cancel()
        self.thread.join(PATIENCE)


class Kubelet:
    """`plugins` and `watches` have the connection and the stream of each registered resource; `plugin` and `watch` are those of
    the last registration."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.path = self.directory / "kubelet.sock"
        self.server = self.plugin = self.watch = None
        self.plugins, self.watches = {}, {}
        self.refusal = None         # the error with which it refuses registrations
        self.registrations = []     # [(time, {number: text})]
        self.errors = []            # errors of its calls to the plugin

    def start(self):
        """Starts as a kubelet does: it removes every socket in the directory, then makes its own."""
        class Handler(grpc.GenericRpcHandler):
            def service(handler, details):  # noqa: N805
                if details.method != "/v1beta1.Registration/Register":
                    return None
                return grpc.unary_unary_rpc_method_handler(self.register)

        for path in self.directory.iterdir():
            if path.is_socket():
                path.unlink()
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((Handler(),))
        self.started = time.monotonic()
        self.server.add_insecure_port(f"unix:{self.path}")
        self.server.start()
        return self

    def register(self, request, context):
        fields = {number: value for number, value in take_apart(request)}
        if self.refusal:
            context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        endpoint = self.directory / fields[2].decode()
        resource = fields[3].decode()
        try:
            self.drop_plugin(resource)
            plugin = Plugin(endpoint)
            options = plugin.options()
        except grpc.RpcError as error:
            self.errors.append(error)
            context.abort(grpc.StatusCode.UNKNOWN, f"can't call back: {error}")
        self.plugin, self.watch = plugin, plugin.watch()
        self.plugins[resource], self.watches[resource] = self.plugin, self.watch
        self.registrations.append((time.monotonic(), {**fields, "options": options}))
        return b""

    def drop_plugin(self, resource):
        if resource in self.plugins:
            self.watches.pop(resource).cancel()
            self.plugins.pop(resource).close()

    def wait_registered(self, count=1):
        wait_until(lambda: len(self.registrations) >= count, PATIENCE, "the registration")
        wait_until(lambda: self.watches and all(watch.lists for watch in list(self.watches.values())), PATIENCE,
                   "the first list")
        return self.plugin

    def stop(self):
        """Closes all connections and stops the server, which removes its socket."""
        for resource in list(self.plugins):
            self.drop_plugin(resource)
        self.plugin = self.watch = None
        if self.server:
            self.server.stop(None).wait(PATIENCE)
        self.server = None


class Books:
    """The kubelet's pod-resources service. `held`: {(namespace, pod, container): {resource: ids}}."""

    def __init__(self, path):
        class Handler(grpc.GenericRpcHandler):
            def service(handler, details):  # noqa: N805
                if details.method != "/v1.PodResourcesLister/List":
                    return None
                return grpc.unary_unary_rpc_method_handler(self.list)

        self.held = {}
        self.asked = 0
        self.server = grpc.server(futures.ThreadPoolExecutor(2))
        self.server.add_generic_rpc_handlers((Handler(),))
        self.server.add_insecure_port(f"unix:{path}")
        self.server.start()

    def list(self, request, context):
        self.asked += 1
        # One entry for each device, as a kubelet sends them.
        return b"".join(
            field(1, field(1, pod) + field(2, namespace) + field(3, field(1, container) + b"".join(
                field(2, field(1, resource) + field(2, name)) for resource, ids in devices.items() for name in ids)))
            for (namespace, pod, container), devices in dict(self.held).items())

    def stop(self):
        self.server.stop(None).wait(PATIENCE)
