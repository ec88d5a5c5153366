-- Neovim's configuration for the picture in docs/editors.md; $PTX_DEBUG is the program.
vim.o.number, vim.o.signcolumn, vim.o.laststatus, vim.o.ruler, vim.o.showmode = true, 'yes', 0, false, false
vim.o.shadafile, vim.o.swapfile, vim.o.tabstop = 'NONE', false, 8
vim.diagnostic.config({ virtual_text = { prefix = '■' }, underline = true })
vim.lsp.handlers['textDocument/hover'] = vim.lsp.with(vim.lsp.handlers.hover, { max_width = 100, max_height = 20 })
vim.keymap.set('n', 'K', vim.lsp.buf.hover)
vim.cmd([[
  syntax on
  highlight Normal ctermfg=252
  highlight Comment ctermfg=244
  highlight Type ctermfg=110
  highlight Identifier ctermfg=180
  highlight Statement ctermfg=150
  highlight LineNr ctermfg=240
  highlight SignColumn ctermbg=NONE
  highlight NonText ctermfg=236
  highlight NormalFloat ctermbg=236 ctermfg=252
  highlight Title ctermfg=180
  highlight DiagnosticError ctermfg=203
  highlight EndOfBuffer ctermfg=234
  highlight DiagnosticUnderlineError cterm=underline
]])
vim.api.nvim_create_autocmd('BufRead', {
  pattern = '*.ptx',
  callback = function()
    vim.bo.filetype = 'ptx'
    vim.cmd([[
      syntax match Statement "\<[a-z][a-z0-9]*\ze\(\.\|\s\|;\)"
      syntax match Type "\.[a-z][A-Za-z0-9:_]*"
      syntax match Identifier "%[a-z][A-Za-z0-9_.]*"
      syntax match Comment "//.*"
    ]])
    local client = vim.lsp.start_client({ name = 'ptx-debug', cmd = { vim.env.PTX_DEBUG, 'lsp', '--select', 'F051' } })
    vim.lsp.buf_attach_client(0, client)
  end,
})
