"""What of a newer listing a peer with the older one would misunderstand."""


def breaks(older, newer):
    """A sentence for each field, value or call that is not what it was."""
    found = []
    for name, entry in older.items():
        now = newer.get(name)
        if now is None or now.kind != entry.kind:
            found.append(f"{entry.kind} {name} is gone")
            continue
        for key, line in entry.lines.items():
            found += line_breaks(f"{name}.{key}", key, line, now)
        # A number that was kept free may come into use, but not one that was in use once.
        for each in entry.reserved_names - now.reserved_names:
            found.append(f"{name} reserves the name {each} no more")
    return found


def line_breaks(place, key, line, now):
    if key not in now.lines:
        if isinstance(key, int) and now.is_reserved(key, name_of(line)):
            return []
        why = "" if isinstance(key, str) else ", and its number and name are not both reserved"
        return [f"{place}, {line}, is gone{why}"]
    if now.lines[key] != line:
        return [f"{place} was {line}, and is {now.lines[key]}"]
    return []


def name_of(line):
    """Of a field's line or an enum's."""
    words = line.split()
    return words[2] if len(words) > 1 else words[0]
