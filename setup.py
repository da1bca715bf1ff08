"""pip install .    The Python package, as a wheel that imports from anywhere.

CMake builds the C++ module (scripts/deps installs what it needs; nothing is downloaded), into
build/python or into the build tree that DYNAMIX_BUILD names.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / "build" / "python"
SHIPPED = ("policies", "scenarios", "workloads")


class BuildModule(build_ext):
    def build_extension(self, extension):
        build = pathlib.Path(os.environ.get("DYNAMIX_BUILD", BUILD / "cmake"))
        if not (build / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Release", "-DDYNAMIX_WITH_TORCH=OFF",
                            "-DDYNAMIX_BUILD_TESTS=OFF", "-DDYNAMIX_BUILD_BENCHMARKS=OFF",
                            f"-DDYNAMIX_PYTHON={sys.executable}"], check=True)
        subprocess.run(["cmake", "--build", build, "--target", "dynamix_python"], check=True)
        built = next((build / "python" / "dynamix").glob("_core*.so"))
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, target)


class BuildPackage(build_py):
    def run(self):
        super().run()
        for folder in SHIPPED:
            shutil.copytree(ROOT / folder,
                            pathlib.Path(self.build_lib) / "dynamix" / "share" / "dynamix" / folder,
                            dirs_exist_ok=True)


BUILD.mkdir(parents=True, exist_ok=True)
setup(
    name="dynamix",
    version=re.search(r"project\(dynamix VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1],
    description="Learned batch sizes for distributed training",
    license="Apache-2.0",
    python_requires=">=3.9",
    install_requires=["numpy"],
    packages=["dynamix", "dynamix.torch"],
    package_dir={"": "python"},
    package_data={"dynamix": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("dynamix._core", [])],
    cmdclass={"build_ext": BuildModule, "build_py": BuildPackage},
    options={"build": {"build_base": str(BUILD)}, "egg_info": {"egg_base": str(BUILD)},
             "bdist_wheel": {"bdist_dir": str(BUILD / "wheel")}},
    zip_safe=False,
)
