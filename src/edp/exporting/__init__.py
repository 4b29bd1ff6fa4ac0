"""Trained policies as files that run without this package: ONNX, StableHLO and C."""
