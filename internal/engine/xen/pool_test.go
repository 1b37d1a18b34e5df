package xen

import (
	"errors"
	"testing"
)

// TestPool: the memory of guests is Xen's, not Dom0's. Without Xen, or if xl does not answer, there
// is no pool and no error.
func TestPool(t *testing.T) {
	e, _, asked := ground(t, "printf 'xen_version : 4.17.5\\ntotal_memory : 4096\\nfree_memory : 2048\\n'")
	if p := e.Pool(t.Context()); p == nil || p.Total != 4096<<20 || p.Free != 2048<<20 || asked() != "info" {
		t.Errorf("%+v; xl is asked: %s", p, asked())
	}
	e.lacks = func() error { return errors.New("no Xen") }
	if p := e.Pool(t.Context()); p != nil || asked() != "info" {
		t.Errorf("%+v; xl is asked: %s", p, asked())
	}
	e, _, _ = ground(t, "exit 1")
	if p := e.Pool(t.Context()); p != nil {
		t.Errorf("%+v", p)
	}
}
