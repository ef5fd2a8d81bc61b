"""Prints each verdict at once, and counts them."""


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def good(self, name, detail=""):
        self.passed += 1
        print(f"ok {name}{': ' + detail if detail else ''}", flush=True)

    def bad(self, name, detail=""):
        self.failed += 1
        print(f"not ok {name}{': ' + detail if detail else ''}", flush=True)

    def verdict(self, is_good, name, detail=""):
        (self.good if is_good else self.bad)(name, detail)

    def skip(self, name, why):
        self.skipped += 1
        print(f"skip {name}: {why}", flush=True)

    def summary(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
