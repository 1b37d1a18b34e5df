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
//
// Promise (Other users of the host): A node uses up nobody else's inotify instances. With
// image/rootfs.TestNamespaceOwner.
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
	// Each child stays below the limit of open files, and keeps its instances until it ends. The first
	// child that has none says why.
	const call = "syscall(294, 0)" // inotify_init1 of x86-64
	said := s.sh("greedy", fmt.Sprintf(`perl -e '
for (1 .. %d) {
	pipe(my $in, my $out) or die "pipe: $!";
	defined(my $child = fork) or die "fork: $!";
	if (!$child) {
		open($_, "+<", "/dev/null") for *STDIN, *STDOUT, *STDERR;
		my $own = 0;
		$own++ while $own < 500 && %s >= 0;
		syswrite($out, "$own $!");
		close($out);
		sleep 300;
		exit;
	}
	close($out);
	($own, $why) = split(/ /, <$in>, 2);
	last unless $own;
	$all += $own;
}
print "$all of them, then: $why"'`, 2*most/500, call))
	taken := 0
	if _, err := fmt.Sscan(said, &taken); err != nil || taken > most || !strings.HasSuffix(said, "Too many open files") {
		t.Fatalf("it took %s; the limit is %d", said, most)
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
