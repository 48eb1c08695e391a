"""The version is that of ../CMakeLists.txt. With VISA_LIBRARIES=DIRECTORY the wheel carries libvisa.so.0 and the reference generator from a
build (build/package/bin) and is for this platform; without it, it uses those of the system."""
import os
import re
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = os.environ.get("VISA_LIBRARIES")

with open(os.path.join(HERE, "..", "CMakeLists.txt"), encoding="utf-8") as f:
    VERSION = re.search(r"^project\(visac VERSION ([\d.]+)", f.read(), re.M).group(1)


class WithLibraries(build_py):
    def run(self):
        super().run()
        for name, place in (("libvisa.so.0", "visa"), ("libvisa_reference.so", "visa/visac")) if LIBRARIES else ():
            target = os.path.join(self.build_lib, place)
            os.makedirs(target, exist_ok=True)
            shutil.copyfile(os.path.join(LIBRARIES, name), os.path.join(target, name))


class Platform(Distribution):
    def has_ext_modules(self):
        return bool(LIBRARIES)


setup(version=VERSION, cmdclass={"build_py": WithLibraries}, distclass=Platform)
