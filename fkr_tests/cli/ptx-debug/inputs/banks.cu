// </script><b>&amp;
void transpose() {
  put(row);
  put(row + 1);
  out = get(column);
}
