"""A decoder layer of examples/decoder as one stream program that maps its kernels, next to the same layer as a plan."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("VISA_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
BIN = os.environ.get("VISA_BIN", str(ROOT / "build/dev/bin"))
os.environ["VISA_BIN"] = BIN  # of decoder.py, too
sys.path.insert(0, str(ROOT / "examples/decoder"))
import decoder as plan_of  # noqa: E402

TEXT = (ROOT / "examples/decoder/decoder.vm").read_text()


def kernel(name, as_name, sizes):
    """The kernel's text under another name, each of its axes with a name and a size of its own, and its constants as the plan has them."""
    body = re.search(rf"#\[device\(chip = 1\)\]\nfn {name}\(.*?\n}}\n", TEXT, re.S).group(0).replace(f"fn {name}(", f"fn {as_name}(", 1)
    constants = plan_of.rows_of_slices(sizes["O"], sizes["I"]) if name == "linear" else {"PIECE": plan_of.piece_of_slice(sizes["L"], 1)} if name == "silu" else {}
    for constant, number in constants.items():
        body = re.sub(rf"\b{constant}\b", str(number), body)
    for axis in sizes:
        body = re.sub(rf"(?<![A-Za-z_:]){axis}(?![A-Za-z_:(])", f"{axis}_{as_name}", body) if axis != "T" else body
        body = re.sub(rf"(?<![A-Za-z_]){axis}(?=::SIZE)", f"{axis}_{as_name}", body)
    return body


def source(c, context, piece):
    h, d, n, m, f = c["hidden_size"], c["head_dim"], c["num_key_value_heads"], c["num_attention_heads"], c["intermediate_size"]
    q, k = m * d, n * d
    made = [("norm", "norm", dict(H=h)), ("linear", "to_q", dict(O=q, I=h)), ("linear", "to_k", dict(O=k, I=h)), ("linear", "to_o", dict(O=h, I=q)),
            ("linear", "widen", dict(O=piece, I=h)), ("linear", "narrow", dict(O=h, I=f)), ("rope", "turn_q", dict(M=m, D=d)), ("rope", "turn_k", dict(M=n, D=d)),
            ("attention", "attention", dict(N=n, G=m // n, D=d, T=context)), ("silu", "silu_of", dict(L=f)), ("add", "add_of", dict(H=h))]
    axes = ", ".join(f"{a}{'' if a == 'T' else '_' + name} = {v}" for _, name, sizes in made for a, v in sizes.items())
    head = TEXT[TEXT.index("const EPSILON"):TEXT.index("// The row of a token")]
    rest = "\n".join(kernel(base, name, sizes) for base, name, sizes in made)
    return f"""axes![S = 1, {axes}];

{head}{rest}
#[stream(depth = 0)]
fn layer(
    x: &Hbm<Tile<bf16, 1, {h}>, {{[1]}}>,
    input_norm: &Hbm<Tile<bf16, 1, {h}>, {{[1]}}>, post_norm: &Hbm<Tile<bf16, 1, {h}>, {{[1]}}>,
    wq: &Hbm<Tile<bf16, {q}, {h}>, {{[1]}}>, wk: &Hbm<Tile<bf16, {k}, {h}>, {{[1]}}>, wv: &Hbm<Tile<bf16, {k}, {h}>, {{[1]}}>, wo: &Hbm<Tile<bf16, {h}, {q}>, {{[1]}}>,
    q_norm: &Hbm<Tile<bf16, 1, {d}>, {{[1]}}>, k_norm: &Hbm<Tile<bf16, 1, {d}>, {{[1]}}>, cos: &Hbm<Tile<bf16, 1, {d}>, {{[1]}}>, sin: &Hbm<Tile<bf16, 1, {d}>, {{[1]}}>,
    keys: &Hbm<Tile<bf16, {context}, {k}>, {{[1]}}>, values: &Hbm<Tile<bf16, {context}, {k}>, {{[1]}}>, mask: &Hbm<Tile<f32, 1, {context}>, {{[1]}}>, scale: &Hbm<Tile<f32, 1, {context}>, {{[1]}}>,
    gate: &Hbm<Tile<bf16, {piece}, {h}>, {{[{f // piece}]}}>, up: &Hbm<Tile<bf16, {piece}, {h}>, {{[{f // piece}]}}>, down: &Hbm<Tile<bf16, {h}, {f}>, {{[1]}}>,
    y: &mut Hbm<Tile<bf16, 1, {h}>, {{[1]}}>,
    position: Stream<Address, {{[1]}}>,
) {{
    let a = x.linear_load(once()).flatten(0, 1);
    let n = a.map(kernel::norm, one(input_norm));
    let q = n.map(kernel::to_q, one(wq));
    let k = n.map(kernel::to_k, one(wk));
    let v = n.map(kernel::to_k, one(wv));
    let qs = q.flat_map(1, tiles::<Tile<bf16, 1, {d}>>).accum(1, retile_rows);
    let ks = k.flat_map(1, tiles::<Tile<bf16, 1, {d}>>).accum(1, retile_rows);
    let turned_q = qs.map(kernel::turn_q, one(q_norm), one(cos), one(sin));
    let turned_k = ks.map(kernel::turn_k, one(k_norm), one(cos), one(sin));
    let heads = turned_q.flat_map(1, rows).accum(1, retile_cols).flat_map(1, tiles::<Tile<bf16, 1, {q // n}>>).accum(1, retile_rows);
    let key = turned_k.flat_map(1, rows).accum(1, retile_cols);
    let all_keys = one(keys).map(set_valid_rows, position).map(append_row, key);
    let all_values = one(values).map(set_valid_rows, position).map(append_row, v);
    let attended = heads.map(kernel::attention, all_keys, all_values, one(mask), one(scale));
    let flat = attended.flat_map(1, rows).accum(1, retile_cols);
    let after = a.map(kernel::add_of, flat.map(kernel::to_o, one(wo)));
    let again = after.map(kernel::norm, one(post_norm));
    let many = again.repeat({f // piece});
    let gates = many.map(kernel::widen, gate.linear_load(&again)).accum(1, retile_cols);
    let ups = many.map(kernel::widen, up.linear_load(&again)).accum(1, retile_cols);
    let inner = gates.map(kernel::silu_of, ups);
    y.linear_store(after.map(kernel::add_of, inner.map(kernel::narrow, one(down))));
}}

#[stream]
fn one(w: T) {{
    w.linear_load(once()).flatten(0, 1)
}}
"""


def plan_cycles(c, context, folder):
    """Of the layer's steps, each as its kernel's own report has it: nothing overlaps between steps of a plan."""
    (folder / "config.json").write_text(json.dumps(c))
    d = plan_of.Decoder(folder, context, folder)
    steps, cycles = d.layer(), {}
    for name, k in d.kernels.items():
        report = subprocess.run([f"{BIN}/visa-run", str(folder / k["file"]), "--report=json"], check=True, capture_output=True, text=True).stdout
        cycles[name] = json.loads(report)["cycles"]
    return sum(cycles[s["run"]] for s in steps)


def stream_cycles(c, context, piece, folder, *more):
    path, binary = folder / "layer.vm", folder / "layer.bin"
    path.write_text(source(c, context, piece))
    (folder / "position.json").write_text("[5]")
    subprocess.run([f"{BIN}/visac", str(path), "-o", str(binary)], check=True)
    done = subprocess.run([f"{BIN}/visa-run", str(binary), "--kernel=layer", "--input", f"position={folder}/position.json", "--report=json", *more],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout), done.stderr


def main():
    faults, checked = 0, ["--check"] if os.environ.get("VISA_LONG") else ["--timing-only"]
    sizes = [("small", plan_of.SMALL, 32, None)]
    if "--full" in sys.argv:
        sizes += [("full", plan_of.FULL, 32, None), ("full", plan_of.FULL, 256, None), ("full, gate and up in halves", plan_of.FULL, 32, 1536)]
    for name, config, context, piece in sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder, c = pathlib.Path(scratch), dict(config)
            plan = plan_cycles(c, context, folder)
            report, _ = stream_cycles(c, context, piece or c["intermediate_size"], folder, *(checked if name == "small" else ["--timing-only"]))
            off = 100 * (report["cycles"] - plan) / plan
            print(f"{name}, cache of {context}: {report['cycles']} cycles as a stream program, {plan} as a plan of kernels: {off:+.1f} %")
            faults += abs(off) > 10
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
