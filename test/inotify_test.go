package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInotify: a node that takes all inotify(7) instances that it can get leaves enough for the
// host and for other nodes.
func TestInotify(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-inotify", `
network = {}
[image.debian]
suite = "bookworm"
[node.greedy]
id = 10
[node.other]
id = 11
`, nil)
	s.do("up")
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	// Each process stays below the limit of open files, and keeps its instances until it ends.
	const call = "syscall(294, 0)" // inotify_init1 of x86-64
	left := s.sh("greedy", fmt.Sprintf(`for i in $(seq %d); do
perl -e '$n = 0; $n++ while $n < 500 && %s >= 0; sleep 300' >/dev/null 2>&1 </dev/null &
done
for i in $(seq 200); do [ "$(perl -e 'print %[2]s')" = -1 ] && break; sleep 0.1; done; perl -e 'print %[2]s'`,
		most/500+2, call))
	if left != "-1" {
		t.Fatalf("it can have more than %d: %s", most, left)
	}
	if got := s.sh("other", "perl -e 'print "+call+" >= 0'"); got != "1" {
		t.Error("the other node can have none")
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatalf("the host can have none: %v", err)
	}
	must(t, unix.Close(fd))
}
