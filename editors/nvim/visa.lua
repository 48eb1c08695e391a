-- visa-lsp for .vm files; Neovim 0.7 (Debian 12) and later.
local group = vim.api.nvim_create_augroup("visa", {})

vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  group = group,
  pattern = "*.vm",
  command = "setfiletype vm",
})

local client
vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "vm",
  callback = function(args)
    vim.bo[args.buf].commentstring = "// %s"
    vim.bo[args.buf].omnifunc = "v:lua.vim.lsp.omnifunc" -- CTRL-X CTRL-O
    client = client or vim.lsp.start_client({ -- vim.lsp.start is of 0.8
      name = "visa-lsp",
      cmd = { "visa-lsp" },
      root_dir = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(args.buf), ":p:h"),
      on_exit = function() client = nil end,
    })
    if client then
      vim.lsp.buf_attach_client(args.buf, client)
    end
    local function key(keys, what)
      vim.keymap.set("n", keys, what, { buffer = args.buf })
    end
    key("K", vim.lsp.buf.hover)
    key("gd", vim.lsp.buf.definition)
    key("gr", vim.lsp.buf.references)
    key("<F2>", vim.lsp.buf.rename)
  end,
})
