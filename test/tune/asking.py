"""What the tests of visac tune share: how a question is asked, and what was found wrong."""
import visa_tools

failures = []


def check(condition, text):
    if not condition:
        failures.append(text)


def tune(question, sizes, *more):
    given = ",".join(f"{axis}={size}" for axis, size in sizes.items())
    return visa_tools.run(["visac", "tune", question, "-D", given, *more])


def verdict(name):
    """The exit status of the test."""
    for failure in failures:
        print(failure)
    print(f"{name}: {len(failures)} failures")
    return 1 if failures else 0
