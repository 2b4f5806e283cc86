#!/usr/bin/python3
"""make_inputs.py FOLDER: input files as h5py makes them, and cases.json with what is in each.

A case: {name, file, args, status, message, datasets, notes, aliases}. `datasets` maps a path to
{dtype letter, shape, dump}, where dump is a file with the expected bytes after conversion;
`message` and the notes are parts of a text. The values come from NumPy, not from the code that
is tested.
"""
import json
import os
import struct
import sys

import h5py
import numpy as np

FOLDER = ""
CASES = []
LETTER = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def numbers(shape, seed=1):
    """Reproducible float64 values, none of them special, all exact in float16."""
    rng = np.random.RandomState(seed)
    return rng.randint(-512, 512, size=shape) / 16.0


def expect(name, path, values):
    """The entry of one dataset: values already have the type it is factored in."""
    values = np.ascontiguousarray(values)
    dump = f"{name}{path.replace('/', '_')[-100:]}.raw"
    values.tofile(os.path.join(FOLDER, dump))
    return {"dtype": LETTER[values.dtype.name], "shape": list(values.shape), "dump": dump}


class Case:
    """One input file; use as a context manager. want() says what a dataset must read as."""

    def __init__(self, name, args=(), status=0, message="", **file_options):
        self.file = name + ".h5"
        self.case = {"name": name, "file": self.file, "args": list(args), "status": status,
                     "message": message, "datasets": {}, "notes": {}, "warnings": {}, "aliases": {},
                     "access": {}}
        self.options = file_options

    def __enter__(self):
        self.h5 = h5py.File(os.path.join(FOLDER, self.file), "w", **self.options)
        return self

    def want(self, path, values, access=None):
        self.case["datasets"][path] = expect(self.case["name"], path, values)
        if access:
            self.case["access"][path] = access

    def put(self, path, stored, values=None, access=None, **options):
        self.h5.create_dataset(path, data=stored, **options)
        self.want(path, stored if values is None else values, access)

    def note(self, path, part, warning=False):
        self.case["warnings" if warning else "notes"][path] = part

    def __exit__(self, *problem):
        if self.h5:
            self.h5.close()
        CASES.append(self.case)


def also(name, args, status=0, message="", paths=None):
    """The file made last under other arguments."""
    base = [c for c in CASES if c["file"] == CASES[-1]["file"]][0]
    case = json.loads(json.dumps(base))
    case.update(name=name, args=list(args), status=status, message=message)
    if paths is not None:
        case["datasets"] = {p: case["datasets"][p] for p in paths}
    CASES.append(case)


def low_level(h5, path, type_id, shape, raw):
    """A dataset of any HDF5 type, written as bytes of that very type."""
    space = h5py.h5s.create_simple(shape)
    ds = h5py.h5d.create(h5.id, path.encode(), type_id, space)
    ds.write(h5py.h5s.ALL, h5py.h5s.ALL, raw, mtype=type_id)


def make_floats():
    a = numbers((3, 4, 5))
    with Case("floats") as c:
        for order, name in (("<", "le"), (">", "be")):
            c.put(f"/f4{name}", a.astype(order + "f4"), a.astype("f4"))
            c.put(f"/f8{name}", a.astype(order + "f8"), a.astype("f8"), access="raw")
            c.put(f"/f2{name}", a.astype(order + "f2"), a.astype("f4"))
            c.put(f"/c8{name}", (a + 1j * a[::-1]).astype(order + "c8"),
                  (a + 1j * a[::-1]).astype("c8"))
            c.put(f"/c16{name}", (a + 1j * a[::-1]).astype(order + "c16"), a + 1j * a[::-1])
    special = np.array([[0.0, -0.0, np.inf, 1.7e308], [np.nan, -np.inf, 1e-40, 5e-324]])
    with Case("special_floats") as c:
        c.put("/f8", special.astype(">f8"), special)
        c.put("/f4", special[:, :3].astype(">f4"), special[:, :3].astype("f4"))
        # every float16 there is
        half = np.arange(65536, dtype="u2").view("f2").reshape(256, 256)
        c.put("/all_f2", half, half.astype("f4"))
        c.put("/all_f2be", half.astype(">f2"), half.astype("f4"))


def bfloat16():
    t = h5py.h5t.IEEE_F32LE.copy()
    t.set_fields(15, 7, 8, 0, 7)
    t.set_size(2)
    t.set_ebias(127)
    return t


def make_small_floats():
    bits = np.arange(65536, dtype="u2").reshape(2, 128, 256)
    wide = (bits.astype("u4") << 16).view("f4")
    with Case("bfloat16") as c:
        low_level(c.h5, "/b", bfloat16(), (2, 128, 256), bits)
        c.want("/b", wide)
        big = bfloat16()
        big.set_order(h5py.h5t.ORDER_BE)
        low_level(c.h5, "/bbe", big, (2, 128, 256), bits.byteswap())
        c.want("/bbe", wide)
        pair = h5py.h5t.create(h5py.h5t.COMPOUND, 4)
        pair.insert(b"r", 0, bfloat16())
        pair.insert(b"i", 2, bfloat16())
        low_level(c.h5, "/bc", pair, (2, 128, 128), bits)
        c.want("/bc", wide.view("c8"))
    tiny = h5py.h5t.IEEE_F32LE.copy()
    tiny.set_fields(7, 3, 4, 0, 3)
    tiny.set_size(1)
    tiny.set_ebias(7)
    with Case("float8", status=41,
              message="/f8e4 has a floating-point format that is not supported "
              "(1 bytes, 4 exponent and 3 mantissa bits)") as c:
        low_level(c.h5, "/f8e4", tiny, (2, 2), np.zeros((2, 2), "u1"))


def make_complex():
    a, b = numbers((2, 3, 4), 2), numbers((2, 3, 4), 3)
    want = {"f2": (a + 1j * b).astype("c8"), "f4": (a + 1j * b).astype("c8"), "f8": a + 1j * b}
    with Case("compounds") as c:
        for re, im in (("r", "i"), ("real", "imag"), ("re", "im")):
            for kind in ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8"):
                for swapped in (False, True):
                    fields = [(re, kind), (im, kind)]
                    stored = np.zeros(a.shape, dtype=fields[::-1] if swapped else fields)
                    stored[re], stored[im] = a, b
                    big = "be" if kind[0] == ">" else "le"
                    path = f"/{re}{im}_{kind[1:]}{big}{'_swapped' if swapped else ''}"
                    c.put(path, stored, want[kind[1:]])
        padded = np.dtype({"names": ["r", "i"], "formats": ["<f4", "<f4"], "offsets": [4, 12],
                           "itemsize": 20})
        stored = np.zeros(a.shape, dtype=padded)
        stored["r"], stored["i"] = a, b
        c.put("/padded", stored, want["f4"])
        other = np.zeros(a.shape, dtype=[("x", "f4"), ("y", "f4")])
        c.h5["/xy"] = other
        c.note("/xy", "a compound that is not a complex number")
    mixed = np.zeros((2, 2), dtype=[("r", "f4"), ("i", "f8")])
    with Case("mixed_parts", status=41, message="/A is a complex compound whose parts are not two "
              "floats of one type") as c:
        c.h5["/A"] = mixed
    with Case("integer_parts", status=41, message="parts are not two floats of one type") as c:
        c.h5["/A"] = np.zeros((2, 2), dtype=[("r", "i4"), ("i", "i4")])


def make_integers():
    with Case("integers") as c:
        for bits in (8, 16, 32, 64):
            for order in "<>":
                top = min(2**(bits - 1) - 1, 2**53)
                i = np.array([[[0, 1, -1], [top, -top, 100]]], dtype=f"{order}i{bits // 8}")
                top = min(2**bits - 1, 2**53)
                u = np.array([[[0, 1, 2], [top, top - 1, 100]]], dtype=f"{order}u{bits // 8}")
                name = f"{bits}{'le' if order == '<' else 'be'}"
                c.put(f"/i{name}", i, i.astype("f8"))
                c.put(f"/u{name}", u, u.astype("f8"))
        b = np.array([[True, False], [False, True], [True, True]])
        c.put("/bool", b, b.astype("f8"))
        color = h5py.enum_dtype({"RED": 0, "GREEN": 1}, basetype="i1")
        c.h5.create_dataset("/color", (2, 2), dtype=color)
        c.note("/color", "an enumeration")
    for kind, values in (("i8", [2**53, 2**53 + 1]), (">i8", [-2**53, -2**53 - 1]),
                         ("u8", [2**53, 2**64 - 1])):
        wide = np.zeros((4, 2, 3), dtype=kind)
        wide[3, 1, 1:] = values
        sign = "u" if "u" in kind else ""
        name = f"wide_{kind.replace('>', 'be')}"
        with Case(name, status=41, message=f"/g/W is {'big-endian ' if '>' in kind else ''}{sign}"
                  f"int64 with values beyond 2^53 (matrix 3, row 1, column 2: {values[1]}); they "
                  "would be rounded. Use --narrow to allow it, or --dataset to leave it out.") as c:
            c.put("/g/W", wide, wide.astype("f8"))
        also(name + "_narrow", ["-n"])


def make_long_double():
    a = numbers((2, 3, 3)).astype("g")
    a[0, 0] = [np.longdouble(1) / 3, np.longdouble(10)**4000, -np.longdouble(10)**-4940]
    a[0, 1] = [np.longdouble(2)**-1074, np.longdouble(2)**-1075, np.longdouble(3) * 2**-1075]
    a[0, 2] = [np.inf, np.nan, -np.longdouble(0)]
    a[1, 0] = [np.longdouble(2)**1024 - np.longdouble(2)**969,
               np.longdouble(2)**1024 - np.longdouble(2)**970,
               np.longdouble(1) + np.longdouble(2)**-53]
    a[1, 1, 0] = np.longdouble(1) + np.longdouble(2)**-53 + np.longdouble(2)**-63
    with np.errstate(all="ignore"):
        narrow, pair = a.astype("f8"), (a + 1j * a[::-1]).astype("c16")
    with Case("long_double", status=41,
              message="which would be rounded to float64. Use --narrow to allow it, or --dataset "
              "to leave it out.") as c:
        c.put("/g", a, narrow)
        stored = np.zeros(a.shape, dtype=[("r", "g"), ("i", "g")])
        stored["r"], stored["i"] = a, a[::-1]
        c.put("/z", stored, narrow + 0j)
        z = np.empty(a.shape, "c16")
        z.real, z.imag = narrow, narrow[::-1]
        c.want("/z", z)
        plain = numbers((2, 2))
        c.put("/plain", plain)
    also("long_double_narrow", ["-n"])
    also("long_double_left_out", ["/plain"], paths=["/plain"])


def make_shapes():
    with Case("shapes") as c:
        c.put("/m2", numbers((3, 4)), access="raw")
        c.put("/m4", numbers((2, 3, 4, 5)))
        c.put("/m5", numbers((2, 1, 3, 4, 5)))
        c.put("/one", numbers((1, 1, 1)))
        for name, shape in (("b0", (0, 3, 4)), ("m0", (2, 0, 4)), ("n0", (2, 3, 0)),
                            ("b00", (2, 0, 3, 4)), ("e", (0, 0))):
            c.put("/" + name, np.zeros(shape))
        c.h5["/scalar"] = 3.0
        c.note("/scalar", "0 dimensions")
        c.h5["/vector"] = np.zeros(7)
        c.note("/vector", "1 dimensions")
        c.h5["/null"] = h5py.Empty("f8")
        c.note("/null", "null dataspace")
        c.h5["/strings"] = np.array([["a", "b"], ["c", "d"]], dtype="S3")
        c.note("/strings", "a string")
        c.h5.create_dataset("/vstrings", (2, 2), dtype=h5py.string_dtype())
        c.note("/vstrings", "a string")
        c.h5.create_dataset("/refs", (2, 2), dtype=h5py.ref_dtype)
        c.note("/refs", "a reference")
        c.h5["/opaque"] = np.zeros((2, 2), dtype="V5")
        c.note("/opaque", "opaque")
        c.h5.create_dataset("/vlen", (2, 2), dtype=h5py.vlen_dtype("f8"))
        c.note("/vlen", "variable length")
        c.h5.create_dataset("/array", (2, 2), dtype="(3,)f8")
        c.note("/array", "an array in each element")
        c.h5["/type"] = np.dtype("f8")
        c.note("/type", "a named datatype")
        c.h5["/named"] = c.h5["/m2"][...]
        del c.h5["/named"]
        c.h5["/m2"].attrs["text"] = "attributes do not matter"
        c.h5.attrs["matrix"] = numbers((4, 4))
        c.h5.create_dataset("/named", (2, 3), dtype=c.h5["/type"])
        c.h5["/named"][...] = numbers((2, 3))
        c.want("/named", numbers((2, 3)))
    with Case("nothing", status=40, message="nothing.h5 holds no batch of matrices") as c:
        c.h5["/vector"] = np.zeros(7)
    also("nothing_lenient", ["-l"])
    CASES[-1]["notes"] = {"/vector": "1 dimensions"}
    with Case("empty_file", status=40, message="holds no batch of matrices"):
        pass
    with Case("only_empty") as c:
        c.put("/b", np.zeros((0, 3, 4)))


def make_storage():
    a = numbers((7, 5, 6))
    four = numbers((5, 4, 6, 3))
    f4 = numbers((7, 5, 6)).astype("f4")
    for latest in (False, True):
        options = {"libver": "latest"} if latest else {}
        with Case("storage_latest" if latest else "storage", **options) as c:
            c.put("/contiguous", a, access="raw plain 1")
            c.put("/chunked", a, chunks=(2, 5, 6), access="hdf5 plain 2")
            c.put("/odd_chunks", a, chunks=(3, 2, 4), access="hdf5 plain 3")
            c.put("/gzip", a, chunks=(2, 3, 3), compression="gzip", shuffle=True,
                  access="hdf5 filtered 2")
            c.put("/fletcher", f4, chunks=(1, 5, 6), fletcher32=True, access="hdf5 filtered 1")
            c.put("/be_gzip", a.astype(">f4"), f4, chunks=(4, 5, 6), compression="gzip",
                  access="hdf5 filtered 4")
            c.put("/unlimited", a, maxshape=(None, None, 6), chunks=(100, 2, 2),
                  access="hdf5 plain 7")
            c.put("/four", four, chunks=(1, 2, 6, 3), compression="gzip", access="hdf5 filtered 2")
            c.put("/four_uneven", four, chunks=(1, 3, 6, 3), access="hdf5 plain 4")
            c.put("/four_rows", four, chunks=(2, 4, 6, 3), access="hdf5 plain 8")
            c.put("/ints", (four * 16).astype("i2"), four * 16, chunks=(2, 3, 5, 2),
                  compression="gzip", shuffle=True)
            stored = np.zeros(four.shape, dtype=[("i", ">f4"), ("r", ">f4")])
            stored["r"], stored["i"] = four, -four
            c.put("/swapped_gzip", stored, (four - 1j * four).astype("c8"), compression="gzip",
                  chunks=(2, 2, 6, 3))
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.COMPACT)
            ds = h5py.h5d.create(c.h5.id, b"/compact", h5py.h5t.IEEE_F64LE,
                                 h5py.h5s.create_simple((7, 5, 6)), plist)
            ds.write(h5py.h5s.ALL, h5py.h5s.ALL, a)
            c.want("/compact", a, access="hdf5 plain 1")
            c.h5.create_dataset("/never", (2, 3, 4), dtype="f8")
            c.want("/never", np.zeros((2, 3, 4)), access="hdf5 plain 1")
            c.h5.create_dataset("/never_fill", (2, 3, 4), dtype=">f4", fillvalue=2.5)
            c.want("/never_fill", np.full((2, 3, 4), 2.5, "f4"))
            c.h5.create_dataset("/partly", (4, 3, 4), dtype="f8", chunks=(1, 3, 4), fillvalue=-1)
            c.h5["/partly"][2] = 5
            want = np.full((4, 3, 4), -1.0)
            want[2] = 5
            c.want("/partly", want)
        also(CASES[-1]["name"] + "_by_one", ["-q", "1"])
        also(CASES[-2]["name"] + "_by_three", ["-q", "3"])
    with Case("user_block", userblock_size=1024) as c:
        c.put("/a", a, access="raw plain 1")
        c.put("/z", a, chunks=(2, 5, 6))
    with open(os.path.join(FOLDER, "user_block.h5"), "r+b") as f:
        f.write(b"#!/bin/sh\n")
    with Case("external_raw") as c:
        a.tofile(os.path.join(FOLDER, "external.bin"))
        c.h5.create_dataset("/e", a.shape, dtype="f8",
                            external=[(os.path.join(FOLDER, "external.bin"), 0, a.nbytes)])
        c.want("/e", a, access="hdf5 plain 1")
    make_external(a)
    make_many_dimensions()
    with Case("missing_filter", status=41,
              message="/a is compressed with HDF5 filter 32100, which is "
              "not installed. Install its plugin and set HDF5_PLUGIN_PATH") as c:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((2, 2))
        plist.set_filter(32100, h5py.h5z.FLAG_OPTIONAL, ())
        ds = h5py.h5d.create(c.h5.id, b"/a", h5py.h5t.IEEE_F64LE,
                             h5py.h5s.create_simple((4, 4)), plist)
        ds.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers((4, 4)))
        c.put("/b", a)
    also("missing_filter_left_out", ["/b"], paths=["/b"])
    also("missing_filter_lenient", ["-l"], paths=["/b"])
    CASES[-1]["warnings"] = {"/a": "filter 32100"}


def make_external(a):
    """Raw data in several files; files that are missing or too short."""
    for name, skip, size in (("ext0", 16, 400), ("ext1", 0, 640), ("ext2", 8, 640)):
        with open(os.path.join(FOLDER, name), "wb") as f:
            at = {"ext0": 0, "ext1": 400, "ext2": 1040}[name]
            f.write(b"x" * skip + a.tobytes()[at:at + size])
    files = [("ext0", 16, 400), ("ext1", 0, 640), ("ext2", 8, 1000)]  # the last has room to spare
    with Case("external_raw_parts") as c:
        c.h5.create_dataset("/e", a.shape, dtype="f8", external=files)
        c.want("/e", a, access="hdf5 plain 1")
        files[2] = ("ext2", 8, h5py.h5f.UNLIMITED)
        c.h5.create_dataset("/unlimited", a.shape, dtype="f8", external=files)
        c.want("/unlimited", a, access="hdf5 plain 1")
        c.h5.create_dataset("/empty", (0, 2, 2), dtype="f8", external=[("no.bin", 0, 32)])
        c.want("/empty", np.zeros((0, 2, 2)))
    for name, files, message in (
            ("missing", [("no.bin", 0, 32)], "/e has its data in the external file no.bin"),
            ("second_missing", [("ext0", 0, 16), ("no.bin", 0, 16)], "external file no.bin"),
            ("short", [("ext0", 400, 32)], "/e has 32 bytes from byte 400 of the external file "
             "ext0, which has only 416"),
            ("past", [("ext0", 4000, 32)], "32 bytes from byte 4000 of the external file ext0")):
        with Case("external_raw_" + name, status=30, message=message) as c:
            c.h5.create_dataset("/e", (2, 2), dtype="f8", external=files)
            c.put("/ok", a)
        also(f"external_raw_{name}_left_out", ["/ok"])


def make_many_dimensions():
    """32 dimensions, the most there can be; HDF5 itself ends the program on chunked ones."""
    shape = (2,) + (1,) * 28 + (2, 3, 4)
    values = numbers((2, 2, 3, 4))
    for dims, layout in ((32, "contiguous"), (32, "compact"), (31, "chunked"), (32, "chunked")):
        refused = (dims, layout) == (32, "chunked")
        with Case(f"dims{dims}_{layout}", status=41 if refused else 0, message="/a is stored in "
                  "chunks and has 32 dimensions" if refused else "") as c:
            these = shape if dims == 32 else shape[:1] + shape[2:]
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            if layout == "chunked":
                plist.set_chunk((1,) * (dims - 2) + (3, 4))
            if layout == "compact":
                plist.set_layout(h5py.h5d.COMPACT)
            ds = h5py.h5d.create(c.h5.id, b"/a", h5py.h5t.IEEE_F64LE,
                                 h5py.h5s.create_simple(these), plist)
            if not refused:
                ds.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
            c.want("/a", values.reshape(these))


def make_deep():
    a = numbers((2, 3))
    with Case("deep") as c:
        c.put("/g" * 511 + "/A", a)
    for name, args, status in (("too_deep", [], 41), ("too_deep_lenient", ["-l"], 0)):
        with Case(name, args, status, libver="latest", message="is a group below 512 others"
                  if status else "") as c:
            c.put("/A", a)
            group = c.h5
            for _ in range(3000):
                group = group.create_group("g")
            group["A"] = a
            c.note("/g" * 50 + "...", "is a group below 512 others", True)
    also("too_deep_left_out", ["/A"])
    CASES[-1]["warnings"] = {}


def make_links():
    a, b = numbers((2, 3)), numbers((3, 2), 5)
    with Case("other") as c:
        c.put("/far/W", a)
        c.put("/top", b)
        c.h5["/back"] = h5py.ExternalLink("links.h5", "/")
    CASES.pop()  # the file is only a target
    with Case("links") as c:
        c.put("/g/W", a, access="raw plain 1")
        c.put("/g/a-b", b)
        c.put("/g/a/x", b)
        c.h5["/a_soft"] = h5py.SoftLink("/g/W")
        c.h5["/g2"] = c.h5["/g"]
        c.h5["/hard"] = c.h5["/g/W"]
        c.h5["/g/self"] = c.h5["/g"]
        c.h5["/g/root"] = c.h5["/"]
        c.h5["/broken"] = h5py.SoftLink("/nowhere/x")
        c.h5["/loop1"] = h5py.SoftLink("/loop2")
        c.h5["/loop2"] = h5py.SoftLink("/loop1")
        c.h5["/soft_group"] = h5py.SoftLink("/g")
        c.h5["/ext"] = h5py.ExternalLink("other.h5", "/far")
        c.h5["/ext_again"] = h5py.ExternalLink("other.h5", "/far")
        c.h5["/ext_all"] = h5py.ExternalLink("other.h5", "/")
        c.h5["/ext_data"] = h5py.ExternalLink("other.h5", "/top")
        c.h5["/ext_self"] = h5py.ExternalLink("links.h5", "/g")
        c.h5["/ext_gone"] = h5py.ExternalLink("gone.h5", "/x")
        c.want("/ext/W", a, access="hdf5 plain 1")
        c.want("/ext_all/top", b, access="hdf5 plain 1")
        c.case["aliases"] = {"/g/W": ["/hard", "/a_soft"], "/ext_all/top": ["/ext_data"]}
        c.note("/broken", "a broken soft link to /nowhere/x", True)
        c.note("/loop1", "a broken soft link", True)
        c.note("/ext_gone", "a broken external link to /x in gone.h5", True)
        c.note("/g2", "listed already")
        c.note("/g/self", "listed already")
        c.note("/soft_group", "listed already")
        c.note("/ext_again", "listed already")
        c.note("/ext_all/back", "listed already")
        c.note("/ext_self", "listed already")
    also("links_by_alias", ["/hard"], paths=["/g/W"])
    also("links_by_pattern", ["g/*"], paths=["/g/W", "/g/a-b", "/g/a/x"])
    also("links_two_patterns", ["/g/W", "*top"], paths=["/g/W", "/ext_all/top"])
    also("links_no_match", ["/g/W", "/h/*"], status=40,
         message="no batch of matrices has a path that matches '/h/*'")


def make_virtual():
    a = numbers((4, 3, 5))
    for i in range(4):
        with h5py.File(os.path.join(FOLDER, f"part{i}.h5"), "w") as f:
            f["/d"] = a[i]

    def mapped(h5, path, files, dataset="/d", shape=(3, 5)):
        layout = h5py.VirtualLayout(shape=(len(files),) + shape, dtype="f8")
        for i, name in enumerate(files):
            layout[i] = h5py.VirtualSource(name, dataset, shape=shape)
        h5.create_virtual_dataset(path, layout, fillvalue=-9)

    files = [f"part{i}.h5" for i in range(4)]
    with Case("virtual", libver="latest") as c:
        mapped(c.h5, "/v", files)
        c.want("/v", a, access="hdf5 plain 1")
        c.h5["/src"] = a[0]
        c.want("/src", a[0])
        mapped(c.h5, "/same_file", ["."], "/src")
        c.want("/same_file", a[:1])
        mapped(c.h5, "/nested", ["virtual.h5"], "/same_file", (1, 3, 5))
        c.want("/nested", a[:1][None])
    with Case("virtual_gone", status=41, libver="latest",
              message="/v is virtual and its source file "
              "gone.h5 cannot be opened") as c:
        mapped(c.h5, "/v", files[:2] + ["gone.h5"])
        c.put("/ok", a)
    also("virtual_gone_left_out", ["/ok"], paths=["/ok"])
    with Case("virtual_no_dataset", status=41, libver="latest",
              message="/v is virtual and its source "
              "/e is missing in part0.h5") as c:
        mapped(c.h5, "/v", files[:1], "/e")
    with Case("virtual_small", status=41, libver="latest",
              message="/v is virtual and its source /d in "
              "part0.h5 is smaller than the part mapped from it") as c:
        mapped(c.h5, "/v", files[:1], "/d", (4, 5))
    with Case("virtual_nested_gone", status=41, libver="latest",
              message="source file gone.h5 cannot be opened") as c:
        mapped(c.h5, "/w", ["virtual_gone.h5"], "/v", (3, 3, 5))
    make_virtual_names(a)
    with Case("virtual_circle", status=41, libver="latest", message="lead in a circle") as c:
        mapped(c.h5, "/p", ["."], "/q")
        mapped(c.h5, "/q", ["."], "/p")


def series(h5, path, file, dataset):
    """A series of numbered sources of (3, 5) each, %b in one of its names."""
    space = h5py.h5s.create_simple((0, 3, 5), (h5py.h5s.UNLIMITED, 3, 5))
    space.select_hyperslab((0, 0, 0), (h5py.h5s.UNLIMITED, 1, 1), (1, 1, 1), (1, 3, 5))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.VIRTUAL)
    plist.set_virtual(space, file.encode(), dataset.encode(), h5py.h5s.create_simple((3, 5)))
    h5py.h5d.create(h5.id, path.encode(), h5py.h5t.IEEE_F64LE, space, plist)


def make_virtual_names(a):
    """%% in a source's name is a percent sign, %b a number."""
    with h5py.File(os.path.join(FOLDER, "50%b.h5"), "w") as f:
        f["/d%"] = a[1]
        f["/n0"], f["/n1"] = a[2], a[3]
    layout = h5py.VirtualLayout(shape=(3, 5), dtype="f8")
    with Case("virtual_percent", libver="latest") as c:
        layout[...] = h5py.VirtualSource("50%%b.h5", "/d%%", shape=(3, 5))
        c.h5.create_virtual_dataset("/v", layout, fillvalue=-9)
        c.want("/v", a[1])
        series(c.h5, "/files", "part%b.h5", "/d")
        c.want("/files", a)
        series(c.h5, "/sets", "50%%b.h5", "/n%b")
        c.want("/sets", a[2:])
    for name, file, dataset, message in (
            ("virtual_percent_gone", "51%%.h5", "/d", "its source file 51%.h5 cannot be opened"),
            ("virtual_percent_no_dataset", "50%%b.h5", "/d%%b", "its source /d%b is missing"),
            ("virtual_percent_small", "50%%b.h5", "/d%%", "its source /d% in 50%b.h5 is smaller")):
        rows = 4 if name.endswith("small") else 3
        with Case(name, status=41, libver="latest", message=message) as c:
            layout = h5py.VirtualLayout(shape=(rows, 5), dtype="f8")
            layout[...] = h5py.VirtualSource(file, dataset, shape=(rows, 5))
            c.h5.create_virtual_dataset("/v", layout, fillvalue=-9)
    for name, file, dataset, message in (
            ("virtual_series_gone", "none%b.h5", "/d", "its source file none0.h5 cannot be opened"),
            ("virtual_series_no_dataset", "50%%b.h5", "/x%b", "its source /x0 is missing")):
        with Case(name, status=41, libver="latest", message=message) as c:
            series(c.h5, "/v", file, dataset)


def make_damaged():
    a = numbers((40, 10, 10))
    with Case("truncated", status=40, message="truncated.h5 is truncated") as c:
        c.put("/a", a)
    path = os.path.join(FOLDER, "truncated.h5")
    os.truncate(path, os.path.getsize(path) - 20000)
    CASES[-1]["datasets"] = {}
    with open(os.path.join(FOLDER, "text.h5"), "w") as f:
        f.write("this is no HDF5 file\n" * 100)
    with Case("text", status=40,
              message="text.h5 is not an HDF5 file: it has no HDF5 signature") as c:
        c.h5.close()
        c.h5 = None
        with open(os.path.join(FOLDER, "text.h5"), "w") as f:
            f.write("this is no HDF5 file\n" * 100)
    for name, status, message in (("zero", 40, "zero.h5 is empty (0 bytes)"),
                                  ("gone", 30, "gone.h5: there is no such file"),
                                  ("folder", 30, "folder.h5 is a directory")):
        with Case(name, status=status, message=message) as c:
            c.h5.close()
            c.h5 = None
            os.remove(os.path.join(FOLDER, name + ".h5"))
            if name == "zero":
                open(os.path.join(FOLDER, "zero.h5"), "w").close()
            if name == "folder":
                os.mkdir(os.path.join(FOLDER, "folder.h5"))
    # A dataset of the complex class (11) of HDF5 2.0: datatype version 5 in place of a float64.
    message = ("/new has a datatype that HDF5 1.10.")
    with Case("native_complex", status=41, message=message[:24]) as c:
        c.put("/new", numbers((2, 2)))
        c.put("/old", numbers((2, 2)).astype("f4"))
    patch("native_complex.h5", bytes.fromhex("11203f0008000000"), bytes.fromhex("5b"))
    CASES[-1]["datasets"].pop("/new")
    also("native_complex_left_out", ["/old"])
    # A dataset whose datatype is rubbish
    with Case("bad_header", status=41, message="/bad ") as c:
        c.put("/bad", numbers((2, 2)))
        c.put("/old", numbers((2, 2)).astype("f4"))
    patch("bad_header.h5", bytes.fromhex("11203f0008000000"), bytes.fromhex("1f"))
    CASES[-1]["datasets"].pop("/bad")
    also("bad_header_left_out", ["/old"])
    also("bad_header_lenient", ["-l"])
    CASES[-1]["warnings"] = {"/bad": ""}
    with Case("open_for_writing", status=40, libver="latest", message="h5clear -s") as c:
        c.put("/a", a)
        c.h5.flush()
    path = os.path.join(FOLDER, "open_for_writing.h5")
    superblock_flags(path)
    CASES[-1]["datasets"] = {}


def patch(name, old, new):
    """Overwrites the start of the one place where `old` stands."""
    path = os.path.join(FOLDER, name)
    with open(path, "r+b") as f:
        data = f.read()
        assert data.count(old) == 1, name
        f.seek(data.index(old))
        f.write(new)


def superblock_flags(path):
    """Marks a version 3 superblock as open for writing, as a killed writer leaves it."""
    with open(path, "r+b") as f:
        head = bytearray(f.read(48))
        assert head[8] == 3
        head[11] |= 1
        f.seek(0)
        f.write(head[:44] + struct.pack("<I", checksum(bytes(head[:44]))))


def checksum(data):
    """HDF5's metadata checksum (Bob Jenkins, lookup3, hashlittle with initial value 0)."""
    mask = 0xffffffff

    def rot(x, k):
        return ((x << k) | (x >> (32 - k))) & mask
    a = b = c = (0xdeadbeef + len(data)) & mask
    at = 0
    while len(data) - at > 12:
        x, y, z = struct.unpack_from("<III", data, at)
        a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
        a = ((a - c) & mask) ^ rot(c, 4)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rot(a, 6)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rot(b, 8)
        b = (b + a) & mask
        a = ((a - c) & mask) ^ rot(c, 16)
        c = (c + b) & mask
        b = ((b - a) & mask) ^ rot(a, 19)
        a = (a + c) & mask
        c = ((c - b) & mask) ^ rot(b, 4)
        b = (b + a) & mask
        at += 12
    x, y, z = struct.unpack("<III", data[at:].ljust(12, b"\0"))
    a, b, c = (a + x) & mask, (b + y) & mask, (c + z) & mask
    for one, two, k in (("c", "b", 14), ("a", "c", 11), ("b", "a", 25), ("c", "b", 16),
                        ("a", "c", 4), ("b", "a", 14), ("c", "b", 24)):
        v = {"a": a, "b": b, "c": c}
        v[one] = ((v[one] ^ v[two]) - rot(v[two], k)) & mask
        a, b, c = v["a"], v["b"], v["c"]
    return c


def main():
    global FOLDER
    FOLDER = os.path.abspath(sys.argv[1])
    os.makedirs(FOLDER, exist_ok=True)
    make_floats()
    make_small_floats()
    make_complex()
    make_integers()
    make_long_double()
    make_shapes()
    make_storage()
    make_deep()
    make_links()
    make_virtual()
    make_damaged()
    with open(os.path.join(FOLDER, "cases.json"), "w") as f:
        json.dump(CASES, f, indent=1)


if __name__ == "__main__":
    main()
