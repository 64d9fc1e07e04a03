"""Evaluates an arithmetic expression, exactly where that is possible. It reads the expression's tree and runs no code of it."""

import ast, json, math, operator, re, sys
from decimal import Context, Decimal, InvalidOperation, localcontext
from fractions import Fraction

MAX_BITS = 14_000  # of a numerator or denominator: some 4,200 digits
WORK = Context(prec=60, Emax=9_999, Emin=-9_999)
DATA_ERROR = 65


class Refused(Exception):
    """A request that has no result, with the reason."""


class Calculator:
    """Values are fractions. `digits` falls once a value is rounded: all of a fraction, 50 of a decimal, 15 of a float."""

    def __init__(self, text, variables):
        self.text = text
        self.variables = variables
        self.digits = None

    def rounded(self, value, digits):
        self.digits = min(digits, self.digits or digits)
        return checked(Fraction(value))

    def decimal(self, name, *values):
        # One of Decimal's own functions, at 60 digits.
        with localcontext(WORK) as context:
            operands = [context.divide(Decimal(value.numerator), Decimal(value.denominator)) for value in values]
            result = getattr(operands[0], name)(*operands[1:])
        if not result.is_finite():
            raise Refused(f"{name} has no result there")
        return self.rounded(to_fraction(result), 50)

    def float(self, function, *values):
        return self.rounded(function(*map(float, values)), 15)

    def sqrt(self, value):
        if value < 0:
            raise Refused("the square root of a negative number is not real")
        parts = [math.isqrt(value.numerator), math.isqrt(value.denominator)]
        root = Fraction(*parts)
        return root if root * root == value else self.decimal("sqrt", value)

    def log(self, value, base=None):
        if value <= 0 or base is not None and base <= 0:
            raise Refused("a logarithm needs numbers above zero")
        result = self.decimal("ln", value)
        return result if base is None else result / self.decimal("ln", base)

    def log10(self, value):
        if value <= 0:
            raise Refused("a logarithm needs numbers above zero")
        return self.decimal("log10", value)

    def power(self, base, exponent):
        if exponent.denominator != 1:
            if base < 0:
                raise Refused("a negative number has no real power of a fraction")
            return self.decimal("__pow__", base, exponent)
        exponent = exponent.numerator
        # Before the work, not after it.
        size = max(base.numerator.bit_length(), base.denominator.bit_length())
        if abs(base) not in (0, 1) and size * abs(exponent) > MAX_BITS:
            if base.denominator == 1:
                raise Refused("the power is too large")
            return self.decimal("__pow__", base, Fraction(exponent))
        return base ** (exponent % 2 if abs(base) == 1 else exponent)

    def call(self, name, values):
        match name, values:
            case "sqrt" | "log10", [value]:
                return getattr(self, name)(value)
            case "ln", [value]:
                return self.log(value)
            case "log", [value] | [value, _]:
                return self.log(*values)
            case "exp", [value]:
                return self.decimal("exp", value)
            case "pow", [base, exponent]:
                return self.power(base, exponent)
            case "sin" | "cos" | "tan" | "asin" | "acos" | "atan" | "radians" | "degrees", [value]:
                return self.float(getattr(math, name), value)
            case "abs" | "floor" | "ceil", [value]:
                return Fraction({"abs": abs, "floor": math.floor, "ceil": math.ceil}[name](value))
            case "round", [value] | [value, _]:
                places = whole(values[1], 0, 100) if len(values) == 2 else 0
                # Half away from zero, as people round; Python's own rounds half to even.
                scaled = abs(value) * 10**places
                return Fraction(math.floor(scaled + Fraction(1, 2)), 10**places) * (1 if value >= 0 else -1)
            case "min" | "max" | "sum", [_, *_]:
                return {"min": min, "max": max, "sum": sum}[name](values)
            case "mean", [_, *_]:
                return sum(values) / len(values)
            case "factorial", [value]:
                return Fraction(math.factorial(whole(value, 0, 1_000)))
            case "comb" | "perm", [n, k]:
                return Fraction(getattr(math, name)(whole(n, 0, 1_000), whole(k, 0, 1_000)))
            case "gcd" | "lcm", [_, *_]:
                return Fraction(getattr(math, name)(*(whole(value, -(10**30), 10**30) for value in values)))
        raise Refused(f"{name} with {len(values)} values is no function here")

    def evaluate(self, node):
        match node:
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int(value)):
                return Fraction(value)
            case ast.Constant(value=float()):
                # From the text: the float that Python made of it is not exact.
                return number(ast.get_source_segment(self.text, node).replace("_", ""))
            case ast.Name(id=name) if name in self.variables:
                return number(self.variables[name])
            case ast.Name(id="pi" | "e" as name):
                return self.rounded(getattr(math, name), 15)
            case ast.Name(id=name):
                raise Refused(f"no value is given for {name}")
            case ast.UnaryOp(op=ast.UAdd() | ast.USub()):
                value = self.evaluate(node.operand)
                return -value if isinstance(node.op, ast.USub) else value
            case ast.BinOp(op=ast.Pow()):
                return self.power(self.evaluate(node.left), self.evaluate(node.right))
            case ast.BinOp() if type(node.op) in OPERATORS:
                return Fraction(OPERATORS[type(node.op)](self.evaluate(node.left), self.evaluate(node.right)))
            case ast.Call(func=ast.Name(id=name), keywords=[]) if not any(isinstance(a, ast.Starred) for a in node.args):
                return self.call(name, [checked(self.evaluate(argument)) for argument in node.args])
        raise Refused(f"{ast.get_source_segment(self.text, node)!r} is not arithmetic")


class Checking(Calculator):
    """Refuses every value that is too large, wherever it comes from."""

    def evaluate(self, node):
        return checked(super().evaluate(node))


OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}


def checked(value):
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise Refused("a value is too large")
    return value


def whole(value, least, most):
    if value.denominator != 1 or not least <= value <= most:
        raise Refused(f"a whole number from {least} to {most} is needed, not {short(value)}")
    return value.numerator


def to_fraction(decimal):
    # 1e999999999 would be a number of a billion digits.
    if decimal and abs(decimal.adjusted()) > 4_000:
        raise Refused("a value is too large")
    return Fraction(decimal)


def number(value):
    text = str(value)
    if match := re.fullmatch(r"([+-]?\d{1,60})/(\d{1,60})", text, re.ASCII):
        return Fraction(int(match[1]), int(match[2]))
    try:
        decimal = Decimal(text)
    except InvalidOperation:
        decimal = Decimal("NaN")
    if not decimal.is_finite():
        raise Refused(f"{text!r} is no number")
    return to_fraction(decimal)


def short(value, digits=15):
    with localcontext(Context(prec=digits, Emax=99_999, Emin=-99_999)) as context:
        decimal = context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(context)
    return format(decimal, "f") if -10 <= decimal.adjusted() <= 20 else str(decimal)


def main():
    request = json.load(sys.stdin, parse_float=Decimal)
    text = request["expression"].strip()
    calculator = Checking(text, request.get("variables", {}))
    try:
        value = calculator.evaluate(ast.parse(text, mode="eval").body)
    except ZeroDivisionError:
        fail(text, "division by zero")
    except SyntaxError as error:
        fail(text, f"it is no expression ({error.msg})")
    except (RecursionError, MemoryError):
        fail(text, "it is nested too deeply")
    except Refused as error:
        fail(text, error)
    except (ArithmeticError, ValueError):
        fail(text, "a function has no real result there, or one that is too large")
    digits = min(request.get("digits", 15), calculator.digits or 50)
    if value.denominator == 1 and calculator.digits is None:
        result = str(value.numerator)
    else:
        result = short(value, digits)
    output = {"result": result, "exact": calculator.digits is None and Fraction(result) == value}
    fraction = f"{value.numerator}/{value.denominator}"
    if calculator.digits is None and value.denominator != 1 and len(fraction) <= 100:
        output["fraction"] = fraction
    print(json.dumps(output))


def fail(text, why):
    shown = text if len(text) <= 80 else text[:80] + "..."
    print(f"cannot calculate {shown!r}: {why}", file=sys.stderr)
    sys.exit(DATA_ERROR)


main()
