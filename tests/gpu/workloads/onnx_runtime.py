"""ONNX Runtime on its CUDA provider: a model of two layers, made here, run again and again."""

import numpy
import onnxruntime

import protocol

WIDTH, BATCH = 512, 256
PROVIDER = "CUDAExecutionProvider"
FLOAT, INPUT, OUTPUT = 1, "x", "y"


# What there is of ONNX's protobuf messages here: field numbers as in onnx.proto.
def number(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(index, value):
    if isinstance(value, int):
        return number(index << 3) + number(value)
    value = value.encode() if isinstance(value, str) else value
    return number(index << 3 | 2) + number(len(value)) + value


def tensor(name, array):
    dims = b"".join(field(1, size) for size in array.shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, array.tobytes())


def value_info(name, shape):
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


def node(kind, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def model(up, down):
    nodes = [node("MatMul", [INPUT, "up"], "a"), node("Relu", ["a"], "b"),
             node("MatMul", ["b", "down"], OUTPUT)]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "layers")
    graph += field(5, tensor("up", up)) + field(5, tensor("down", down))
    graph += field(11, value_info(INPUT, (BATCH, WIDTH)))
    graph += field(12, value_info(OUTPUT, (BATCH, WIDTH)))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def main():
    options = protocol.arguments(__doc__)
    if PROVIDER not in onnxruntime.get_available_providers():
        protocol.skip(f"this ONNX Runtime has only "
                      f"{', '.join(onnxruntime.get_available_providers())}")
    numbers = numpy.random.default_rng(20261121)
    up = numbers.standard_normal((WIDTH, 4 * WIDTH), dtype=numpy.float32)
    down = numbers.standard_normal((4 * WIDTH, WIDTH), dtype=numpy.float32)
    x = numbers.standard_normal((BATCH, WIDTH), dtype=numpy.float32)
    session = onnxruntime.InferenceSession(model(up, down), providers=[
        (PROVIDER, {"use_tf32": "0"})])
    if session.get_providers()[0] != PROVIDER:
        protocol.skip(f"{PROVIDER} does not load here")
    results = [session.run([OUTPUT], {INPUT: x})[0] for _ in range(20)]
    protocol.hold()
    if options.quota is not None:
        protocol.ask_too_much(
            lambda: onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                [options.quota // 2], numpy.float32, "cuda", 0),
            Exception, "2x the quota", ("memory", "allocat"))
    results += [session.run([OUTPUT], {INPUT: x})[0] for _ in range(20)]
    protocol.end(*results)


main()
