"""Builds the extension. perfgate runs this file once for base and once for head."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="scale-kernels",
    version="1.0",
    ext_modules=[CUDAExtension("scale_kernels", ["scale.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
