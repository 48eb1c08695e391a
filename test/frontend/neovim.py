#!/usr/bin/env python3
"""editors/nvim/visa.lua in a headless Neovim: the server starts for a .vm file, diagnostics come and go with the text, hover, definition,
references, rename, completion, signature help, symbols and layout are answered. Skips where there is no nvim."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import visa_tools

SESSION = """
local out = {}
local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then
    out.missing = what
  end
end
local function at(needle, shift)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(needle, 1, true)
    if column then
      vim.api.nvim_win_set_cursor(0, { number, column - 1 + (shift or 0) })
      return
    end
  end
end
local function ask(method, more)
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(), more or {})
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 60000) or {}) do
    return answer.result
  end
end
wait("client", function() return #vim.lsp.buf_get_clients() > 0 end)
wait("ready", function() for _, c in pairs(vim.lsp.buf_get_clients()) do return c.initialized end end)
out.filetype = vim.bo.filetype
at("m![N, K / 16]", 6)
vim.cmd("normal! rX")
wait("diagnostics", function() return #vim.diagnostic.get(0) > 0 end)
out.wrong = vim.diagnostic.get(0)[1] and vim.diagnostic.get(0)[1].code
vim.cmd("normal! u")
wait("no diagnostics", function() return #vim.diagnostic.get(0) == 0 end)
at(".fetch", 2)
out.hover = ask("textDocument/hover").contents.value
at("&weights", 1)
out.definition = ask("textDocument/definition").range.start.line
out.references = #ask("textDocument/references", { context = { includeDeclaration = true } })
at(".fetch::<", 9)
out.signature = ask("textDocument/signatureHelp").signatures[1].label
out.symbols = #ask("textDocument/documentSymbol")
at(".collect", 1)
out.completions = #ask("textDocument/completion")
at("&weights", 1)
vim.lsp.buf.rename("filter")
wait("rename", function() return vim.fn.search("&filter", "nw") > 0 end)
vim.cmd("silent! write! result.vm")
vim.fn.writefile({ vim.fn.json_encode(out) }, "out.json")
vim.cmd("qall!")
"""


def main():
    if not shutil.which("nvim"):
        print("no nvim: skipped")
        return visa_tools.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm"), os.path.join(folder, "k.vm"))
        with open(os.path.join(folder, "session.lua"), "w") as file:
            file.write(SESSION)
        env = dict(visa_tools.environment(), HOME=folder, XDG_CONFIG_HOME=folder, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder)
        done = subprocess.run(["nvim", "--headless", "-u", os.path.join(visa_tools.SOURCE, "editors", "nvim", "visa.lua"), "-i", "NONE", "-n", "k.vm",
                               "-c", "luafile session.lua", "-c", "cquit"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        assert os.path.exists(os.path.join(folder, "out.json")), done.stdout.decode()
        with open(os.path.join(folder, "out.json")) as file:
            out = json.load(file)
        assert "missing" not in out, (out, done.stdout)
        assert out["filetype"] == "vm" and out["wrong"] == "E-AXIS-UNKNOWN", out
        assert "fetch::<Time, Packet>()" in out["hover"] and "sequencer" in out["hover"], out
        lines = open(os.path.join(visa_tools.SOURCE, "examples", "matmul.vm")).read().split("\n")
        assert lines[out["definition"]].lstrip().startswith("let weights"), out
        assert out["references"] == 2 and out["signature"] == "fetch::<Time, Packet>()" and out["symbols"] > 3 and out["completions"] > 5, out
        renamed = open(os.path.join(folder, "result.vm")).read()
        assert renamed == "\n".join(lines).replace("&weights", "&filter").replace("let weights", "let filter"), renamed
    print("a session in Neovim: as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
