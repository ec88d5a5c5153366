#!/usr/bin/env python3
"""Checks that a file that uses a name of the standard library includes the header that defines it.

A header counts if the file itself or a header of this project that it includes, directly or indirectly, includes it.
Headers of the standard library and of other projects do not count, since the further headers that they include differ
between compilers: GCC 12 builds a file that uses std::sort without <algorithm>, GCC 14 refuses it.

usage: std_headers.py REPO
"""
import functools
import pathlib
import re
import sys

FOLDERS = ("support", "analyzer", "builder", "kernels", "runtime", "tools", "fkr_tests", "docs")
# header -> the names of namespace std that it defines; a name that several headers define is listed for each of them.
NAMES = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal equal_range fill fill_n find find_if "
                 "find_if_not for_each generate includes is_sorted is_sorted_until lower_bound max max_element merge min min_element minmax "
                 "minmax_element mismatch none_of nth_element partition partition_point remove_if replace replace_if reverse rotate "
                 "search set_difference shuffle sort stable_sort transform unique upper_bound",
    "array": "array", "atomic": "atomic memory_order_relaxed memory_order_acquire memory_order_release", "barrier": "barrier",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_one countr_zero endian has_single_bit popcount rotl rotr",
    "bitset": "bitset", "charconv": "from_chars to_chars", "chrono": "chrono chrono_literals",
    "cmath": "ceil cos exp exp2 floor fma fmin fpclassify frexp ilogb isfinite isinf isnan ldexp lerp llround log log2 lround nan nearbyint "
             "nextafter pow round signbit sin sqrt tanh trunc",
    "condition_variable": "condition_variable", "cstdio": "fclose fflush fgets fopen fprintf fputs fread fseek ftell fwrite printf snprintf tmpfile",
    "cstdlib": "abort aligned_alloc atoi calloc free getenv malloc strtoull system", "cstring": "memchr memcmp memcpy memmove memset strcmp strcpy strlen",
    "deque": "deque", "filesystem": "filesystem", "fstream": "ifstream ofstream", "functional": "function hash plus ref", "future": "promise shared_future",
    "initializer_list": "initializer_list", "iostream": "cerr cout cin", "limits": "numeric_limits", "list": "list", "map": "map multimap",
    "memory": "default_delete make_shared make_unique make_unique_for_overwrite shared_ptr unique_ptr weak_ptr",
    "mutex": "lock_guard mutex recursive_mutex unique_lock", "numeric": "accumulate gcd iota partial_sum transform_reduce",
    "optional": "nullopt optional", "random": "minstd_rand mt19937 mt19937_64 random_device", "regex": "regex regex_search smatch sregex_iterator",
    "set": "multiset set", "span": "as_bytes as_writable_bytes span", "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "logic_error runtime_error", "stop_token": "stop_source stop_token", "string": "getline stoi stoul stoull string to_string",
    "string_view": "string_view", "system_error": "errc error_code", "thread": "this_thread thread",
    "tuple": "apply tie tuple", "type_traits": "conditional_t is_same_v make_signed_t make_unsigned_t remove_const_t remove_cvref_t",
    "unordered_map": "unordered_map", "unordered_set": "unordered_set",
    "utility": "declval exchange forward move pair swap", "variant": "get_if holds_alternative monostate variant visit", "vector": "vector",
}
# Further names that a header defines, or headers that it includes, according to the standard.
ALSO = {
    "initializer_list": {"array", "deque", "list", "map", "set", "string", "unordered_map", "unordered_set", "valarray", "vector", "algorithm", "regex",
                         "optional", "utility", "variant", "memory"},
    "string_view": {"string"}, "mutex": {"condition_variable"}, "utility": {"map", "unordered_map", "memory", "tuple", "vector"},
    "system_error": {"filesystem", "charconv"},
}
DEFINED_IN = {name: header for header, names in NAMES.items() for name in names.split()}
HEADERS = {name: {header} | ALSO.get(header, set()) for name, header in DEFINED_IN.items()}
HEADERS["move"].add("algorithm")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
USE = re.compile(r"\bstd::(?:ranges::)?(\w+)|\bfor \([^;(){}]*: \{")
LITERALS_AND_COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def blank(match):
    return "\n" * match.group(0).count("\n")


def faults(repo):
    @functools.cache
    def direct(path):
        text = path.read_text(encoding="utf-8")
        project, standard = [], set()
        for quote, target in INCLUDE.findall(text):
            own = repo / target if (repo / target).is_file() else path.parent / target
            if quote == '"' and own.is_file():
                project.append(own.resolve())
            else:
                standard.add(target)
        return project, standard

    def visible(path):
        seen, waiting, headers = set(), [path], set()
        while waiting:
            file = waiting.pop()
            if file not in seen:
                seen.add(file)
                project, standard = direct(file)
                waiting += project
                headers |= standard
        return headers

    for folder in FOLDERS:
        for path in sorted((repo / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".h") or not path.is_file() or "compile_fail" in path.parts:
                continue
            text = LITERALS_AND_COMMENTS.sub(lambda m: m.group(0) if INCLUDE.match(m.group(0)) else blank(m), path.read_text(encoding="utf-8"))
            headers, told = visible(path.resolve()), set()
            for match in USE.finditer(text):
                name = match.group(1) or "initializer_list"  # the type in `for (int signal : {SIGINT, SIGTERM})`
                if name in HEADERS and not HEADERS[name] & headers and name not in told:
                    told.add(name)
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"{path.relative_to(repo)}:{line}: std::{name} needs <{DEFINED_IN[name]}>"


found = list(faults(pathlib.Path(sys.argv[1]).resolve()))
print("\n".join(found) or "every file can see the standard headers of what it names")
sys.exit(bool(found))
