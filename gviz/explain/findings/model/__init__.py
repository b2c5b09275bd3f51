"""The forward of a model: attention, softmax, normalization, recurrent layers, the order of dimensions."""
