"""The limits of the Switch Engine at their edges (test/limits.py)."""
from limits import accepted, limit, refused


@limit
def switch_blocking_flits(row):
    def of(steps, flits):  # two slices exchange, so many packets at a time
        units = "m![1], m![1 # 2], m![S]"
        return (f"axes![S = 256, D = 2, T = {steps}, P = {32 * flits}];\n"
                f"#[device(chip = 1)]\nfn k(device: &mut Device, x: &DmTensor<i8, {units}, m![D, T, P]>) -> DmTensor<i8, m![1], m![1 # 2], m![S / 2, D], m![T, S % 2, P]> {{\n"
                f"    device.main.begin(x.view()).fetch::<m![D, T], m![P]>()\n"
                f"        .switch::<m![S / 2, D], m![T, S % 2]>(SwitchConfig::InterTranspose {{ slice1: 2, slice0: 1, time0: {steps} }}).collect().commit_trim::<m![P % 32]>().commit()\n}}\n")
    most = row.value // 2
    return [accepted(of(most, 1)), accepted(of(1, most)), refused(of(most + 1, 1), "E-SWITCH-BLOCKED"), refused(of(1, most + 1), "E-SWITCH-BLOCKED")]
