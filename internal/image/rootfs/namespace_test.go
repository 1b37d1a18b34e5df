package rootfs

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestNamespaceOwner: the user namespace of a node is created by the node's own root, under its id
// on the host.
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

// TestNamespaceLimits: the limits on namespaces hold for everything root of a container does, and
// root cannot change them.
//
// Promise (What nodes may do to the host): A node has at most 256 network namespaces, 1,000 of each
// other kind and, with cgroup v2, 1,000 control groups. With host/cgroup.TestGroupsBelow.
func TestNamespaceLimits(t *testing.T) {
	need.Integration(t)
	ids := IDs{1900065536, 65536}
	space, err := ids.namespace()
	must(t, err)
	defer space.Close()
	program := need.Attack(t)
	for _, kind := range []string{"net", "mnt", "uts"} {
		cmd := exec.Command("nsenter", "--user=/proc/self/fd/3", "--setuid=0", "--setgid=0", "--", program, "namespaces",
			kind, "1500")
		cmd.ExtraFiles = []*os.File{space}
		out, err := cmd.Output()
		must(t, err)
		made, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil || made == 0 || made > namespaceLimits[kind] {
			t.Errorf("root of the container has made %s of the kind %s, and may make %d", out, kind, namespaceLimits[kind])
		}
	}
}
