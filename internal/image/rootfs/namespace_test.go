package rootfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestNamespaceOwner: the user namespace of a node is made by the node's own root, as the host knows it.
func TestNamespaceOwner(t *testing.T) {
	need.Integration(t)
	ids := IDs{1900065536, 65536}
	space, err := ids.namespace()
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	var owner uint32
	const getOwner = 0xb704 // NS_GET_OWNER_UID of linux/nsfs.h
	if owner, err = unix.IoctlGetUint32(int(space.Fd()), getOwner); err != nil || int(owner) != ids.First {
		t.Errorf("it belongs to %d: %v", owner, err)
	}
	if os.Geteuid() != 0 {
		t.Error("this process is no longer root")
	}
}
