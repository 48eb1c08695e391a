"""What the tests of visac tune share: how a question is asked, what its kernel computes, and what was found wrong."""
import os

import visa_tools

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def tune(question, sizes, *more):
    given = ",".join(f"{axis}={size}" for axis, size in sizes.items())
    return visa_tools.run(["visac", "tune", question, "-D", given, *more])


def computed(work, inputs, question):
    """The bytes of the result of `o.bin` there for inputs by port; None, and a failure, where it does not run."""
    given, out = [], os.path.join(work, "found.raw")
    for name, data in inputs.items():
        path = os.path.join(work, name + ".raw")
        with open(path, "wb") as file:
            file.write(data)
        given.append(f"--input={name}={path}")
    ran = visa_tools.run(["visa-run", os.path.join(work, "o.bin"), *given, "--output=" + out])
    check(ran.status == 0, f"{question}: " + ran.text())
    if ran.status != 0:
        return None
    with open(out, "rb") as file:
        return file.read()


def verdict(name):
    """The exit status of the test."""
    for failure in failures:
        print(failure)
    print(f"{name}: {len(failures)} failures")
    return 1 if failures else 0
