// An empty file of assembly lets the compiler take functions without a body, which package runtime has (go:linkname).
