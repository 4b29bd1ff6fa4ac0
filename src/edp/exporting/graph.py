"""ONNX graphs, written node by node."""

from typing import Any

import numpy as np

from edp.errors import UserError

OPSET, IR = 17, 8  # what onnxruntime reads since 2022; it has layer normalisation
LARGEST = 2_000_000_000  # bytes of a file


def import_onnx() -> Any:
    """The package ``onnx``, which is an extra."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise UserError("needs the packages onnx and onnxruntime: pip install 'edp-rl[onnx]'") from None
    return onnx


class Graph:
    """Nodes and constants. Methods return the names of their results."""

    def __init__(self) -> None:
        self.onnx = import_onnx()
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], tuple[str, np.ndarray]] = {}
        self.inputs: list[Any] = []

    def input(self, name: str, type: str, shape: tuple[str | int, ...]) -> str:
        element = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(type))
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, element, shape))
        return name

    def constant(self, value: Any, type: str = "float32") -> str:
        """A constant. Equal constants are one."""
        array = np.asarray(value, type, order="C")
        name, _ = self.constants.setdefault(
            (type, array.shape, array.tobytes()), (f"constant_{len(self.constants)}", array)
        )
        return name

    def add(self, operator: str, *inputs: Any, name: str = "", outputs: int = 1, **attributes: Any) -> Any:
        """A node. Inputs that are not names become constants; None is an input that is left out."""
        number = len(self.nodes)
        names = ["" if given is None else given if isinstance(given, str) else self.constant(given) for given in inputs]
        made = (
            [name or f"{operator.lower()}_{number}"] if outputs == 1 else [f"part_{number}_{i}" for i in range(outputs)]
        )
        self.nodes.append(self.onnx.helper.make_node(operator, names, made, **attributes))
        return made[0] if outputs == 1 else made

    def integers(self, *values: int) -> str:
        return self.constant(values, "int64")

    def reshape(self, x: str, *shape: int) -> str:
        return self.add("Reshape", x, self.integers(*shape))

    def linear(self, x: str, weight: Any, shift: Any) -> str:
        """x · weight + shift, where ``shift`` is a bias or a name."""
        return self.add("Gemm", x, weight, shift)

    def mish_of_negative(self, z: str) -> str:
        """``edp.networks.mish`` of x, given z = -x.

        With g = sigmoid(z), tanh(softplus(x)) = (1 - g²) / (1 + g²), so Mish is z - z / ((1 + g²) / 2). This has fewer
        nodes than a formula with x, and nothing in it overflows.
        """
        g = self.add("Sigmoid", z)
        return self.add("Sub", z, self.add("Div", z, self.add("Mean", self.add("Mul", g, g), 1.0)))

    def activate(self, x: str, activation: str) -> str:
        return self.mish_of_negative(self.add("Neg", x)) if activation == "mish" else self.add("Relu", x)

    def standardise(self, x: str, width: int, epsilon: float) -> str:
        """Layer normalisation over the last axis, without parameters."""
        return self.add("LayerNormalization", x, np.ones(width), np.zeros(width), axis=-1, epsilon=epsilon)

    def mean(self, x: str, axis: int) -> str:
        return self.add("ReduceMean", x, axes=[axis], keepdims=1)

    def model(self, output: str, shape: tuple[str | int, ...], name: str) -> Any:
        """The model whose only output is ``output``. It has been checked by onnx."""
        helper, float32 = self.onnx.helper, self.onnx.TensorProto.FLOAT
        if sum(array.nbytes for _, array in self.constants.values()) > LARGEST:
            raise UserError("an ONNX file holds at most 2 GB, and this policy is larger")
        arrays = [self.onnx.numpy_helper.from_array(array, name) for name, array in self.constants.values()]
        result = helper.make_tensor_value_info(output, float32, shape)
        graph = helper.make_graph(self.nodes, name, self.inputs, [result], arrays)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="edp")
        model.ir_version = IR
        self.onnx.checker.check_model(model, full_check=True)
        return model
