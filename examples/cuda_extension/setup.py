"""Builds the extension; perfgate builds it once for each side of a comparison, by this same file."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="scale-kernels",
    version="1.0",
    ext_modules=[CUDAExtension("scale_kernels", ["scale.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
