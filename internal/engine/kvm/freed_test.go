package kvm

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
)

// frees checks that memory which a guest has used and freed returns to the host by itself.
func (g ground) frees(t *testing.T, ref engine.Ref) {
	t.Helper()
	const used = 128 << 20
	before := resident(t, g.machine(ref).qemu())
	g.says(t, ref, "sh", "-c", fmt.Sprintf("head -c %d /dev/zero >/dev/shm/used", used))
	full := resident(t, g.machine(ref).qemu())
	if full < before+used/2 {
		t.Errorf("a guest has used %d MiB, and QEMU has %d MiB after %d", used>>20, full>>20, before>>20)
	}
	g.says(t, ref, "rm", "/dev/shm/used")
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		now := resident(t, g.machine(ref).qemu())
		if now <= full-used/2 {
			t.Logf("of the guest's memory QEMU has %d MiB, %d MiB after it has used %d MiB more, and %d MiB when it has freed them",
				before>>20, full>>20, used>>20, now>>20)
			return
		}
		if time.Since(begun) > time.Minute {
			t.Errorf("a guest has freed %d MiB, and QEMU still has %d MiB of %d", used>>20, now>>20, full>>20)
			return
		}
	}
}

// resident returns how much of the guest's memory QEMU has in RAM, as shared memory.
func resident(t *testing.T, qemu int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", qemu))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if size, ok := strings.CutPrefix(line, "RssShmem:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(size)[0], 10, 64)
			must(t, err)
			return kib << 10
		}
	}
	t.Fatalf("the kernel tells nothing of what process %d shares", qemu)
	return 0
}
