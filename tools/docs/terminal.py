"""Draws what a terminal shows, text with ANSI escapes, as SVG."""
import re
from xml.sax.saxutils import escape

ADVANCE, LINE, MARGIN, BAR = 7.83, 19, 18, 34  # of a monospaced font of 13 pixels
BACKGROUND, FOREGROUND, FRAME = "#16191d", "#d7dae0", "#2b3036"
COLOURS = {"31": "#ff6b68", "32": "#6ac47e", "33": "#e5c07b", "34": "#61afef", "35": "#c792ea", "36": "#56b6c2"}
ESCAPE = re.compile(r"\x1b\[([\d;]*)m")


def colour(codes):
    """The colour that the codes behind a 38 or 48 name, of which it takes them."""
    if codes[:1] == ["2"]:
        red, green, blue = map(int, codes[1:4])
        del codes[:4]
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = int(codes[1])
    del codes[:2]
    if number < 16:
        return COLOURS.get(str(30 + number % 8), FOREGROUND)
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#" + "".join(f"{levels[each]:02x}" for each in (number // 36, number // 6 % 6, number % 6))


def styled(style, codes):
    """The style after the codes of one escape. Colours of 38 and 48 are in it as f#123456 and b#123456."""
    codes = [code for code in codes if code]
    style = set(style) if codes else set()
    while codes:
        code = codes.pop(0)
        if code == "0":
            style = set()
            continue
        group = {"3": "3f", "9": "3f", "4": "b"}.get(code[0]) if len(code) == 2 else None
        if group:
            style = {each for each in style if len(each) == 1 or each[0] not in group}
        if code in ("38", "48"):
            style.add(("f" if code == "38" else "b") + colour(codes))
        elif code not in ("39", "49"):
            style.add(code)
    return frozenset(style)


def cells(line, style=frozenset()):
    """[(character, style)] of a line with ANSI escapes; a style is the set of its codes."""
    result, at = [], 0
    for match in ESCAPE.finditer(line):
        result += [(character, style) for character in line[at:match.start()]]
        style = styled(style, match[1].split(";"))
        at = match.end()
    return result + [(character, style) for character in line[at:]]


def attributes(style):
    words = ['font-weight="bold"'] if "1" in style else []
    words += ['opacity="0.6"'] if "2" in style else []
    words += [f'fill="{COLOURS[code]}"' for code in sorted(style) if code in COLOURS]
    words += [f'fill="{code[1:]}"' for code in sorted(style) if code[0] == "f"]
    words += ['text-decoration="underline"'] if "4" in style else []
    return " ".join(words)


def spans(line):
    """SVG of a line: a tspan for each run of one style, each placed by its column, so that no font shifts it."""
    parts, at = [], 0
    while at < len(line):
        end = at
        while end < len(line) and line[end][1] == line[at][1]:
            end += 1
        text = "".join(character for character, _ in line[at:end])
        if text.strip():
            at += len(text) - len(text.lstrip(" "))
            text = text.strip(" ")
            place = f'x="{MARGIN + at * ADVANCE:.1f}" textLength="{len(text) * ADVANCE:.1f}"'
            parts.append(f'<tspan {place} {attributes(line[at][1])}>{escape(text)}</tspan>'.replace(" >", ">"))
        at = end
    return "".join(parts)


def backgrounds(line, row):
    """SVG of what is behind a line: a rectangle for each run of one background."""
    parts, at = [], 0
    while at < len(line):
        fill = next((code[1:] for code in line[at][1] if code[0] == "b"), None)
        end = at
        while end < len(line) and next((code[1:] for code in line[end][1] if code[0] == "b"), None) == fill:
            end += 1
        if fill:
            parts.append(f'<rect x="{MARGIN + at * ADVANCE:.1f}" y="{BAR + row * LINE - 1}" '
                         f'width="{(end - at) * ADVANCE:.1f}" height="{LINE}" fill="{fill}"/>\n')
        at = end
    return "".join(parts)


def draw(lines, columns, label):
    """The picture of lines of cells."""
    below = "".join(backgrounds(line, i) for i, line in enumerate(lines))
    width, height = 2 * MARGIN + columns * ADVANCE, BAR + len(lines) * LINE + MARGIN
    rows = "\n".join(f'<text xml:space="preserve" y="{BAR + 13 + i * LINE}">{spans(line)}</text>' for i, line in enumerate(lines) if line)
    dots = "".join(f'<circle cx="{18 + 18 * i}" cy="17" r="5.5" fill="{colour}"/>'
                   for i, colour in enumerate(("#ff6b68", "#e5c07b", "#6ac47e")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
            f'height="{height}" role="img" aria-label="{label}">\n'
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}" stroke="{FRAME}"/>\n{dots}\n{below}'
            '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="13" '
            f'fill="{FOREGROUND}" style="white-space:pre">\n{rows}\n</g>\n</svg>\n')
