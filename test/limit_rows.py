"""Rows of limits and the functions that judge them: what test/limits.py (of the machine) and test/tool_limits.py (of the tools) have in common.

A row `LIMIT(name, value, "unit", ..)` has a function of its name, which makes both sides of its edge. A row without one is a failure, as is a
function without a row."""
import os
import re
import sys

import visa_tools


class Limits(dict):
    """name -> function; `limit` is the decorator that adds one. `elsewhere`: names that another test judges."""

    def __init__(self, table, elsewhere=()):
        super().__init__()
        self.table, self.elsewhere = table, elsewhere

    def limit(self, function):
        self[function.__name__] = function
        return function

    def rows(self, more=""):
        """name -> (value, unit) of the table and of more text."""
        with open(os.path.join(visa_tools.SOURCE, self.table), encoding="utf-8") as file:
            text = file.read() + more
        found = {}
        for name, value, unit in re.findall(r"^LIMIT\((?:ENGINE_\w+, )?(\w+), ([^,]+), \"([^\"]+)\",", text, re.M):
            number = re.sub(r"(\d)[uUlL]+", r"\1", value)
            if not re.fullmatch(r"[-\d\s()*<]+", number):
                sys.exit(f"{self.table}: {name} is {value}, which this script cannot read")
            found[name] = (eval(number), unit)  # noqa: S307: digits and operators only
        if len(found) != len(re.findall(r"^LIMIT\(", text, re.M)):
            sys.exit(f'{self.table}: a row has another form than LIMIT(name, value, "unit", ..), or its name stands twice')
        return found

    def judge(self, rows, faults_of):
        """Prints what is wrong, and returns the exit status. `faults_of(name, function, value)`: texts."""
        faults = [f"{name}: no row of {self.table} has this name" for name in sorted((set(self) | set(self.elsewhere)) - set(rows))]
        for name, (value, _) in rows.items():
            if name in self:
                faults += [f"{name} = {value}: {fault}" for fault in faults_of(name, self[name], value)]
            elif name not in self.elsewhere:
                faults.append(f"{name}: the row has no test at its edge")
        for fault in faults:
            print(f"FAIL {fault}")
        print(f"{len(self)} limits, {len(faults)} failed")
        return 1 if faults else 0
