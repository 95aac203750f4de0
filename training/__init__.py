"""What made the weights: training on PyTorch, evaluation in the page's own environment, export to ONNX."""
