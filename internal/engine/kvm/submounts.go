package kvm

import (
	"context"
	"errors"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// A guest mounts by itself, where it comes upon it, what is mounted in the root that virtiofsd gives to it. It lets go of it when it is told. The scripts get places,
// each as it is and as mount tables have it.
const (
	// forgetting unmounts them, in the namespace of init first, then in those that services have. It prints what keeps one busy and exits with inUse.
	forgetting = `
while [ $# -gt 0 ]; do
	tries=0
	while [ $tries -lt 10 ]; do
		busy=
		while table=$(grep -lsF " / $2 " /proc/1/mountinfo /proc/[0-9]*/mountinfo | head -n 1); [ "$table" ]; do
			pid=${table#/proc/}
			case $(grep -sF " / $2 " "$table" | tail -n 1) in '' | *' - virtiofs '*) ;; *) echo "what is mounted over it"; exit 9 ;; esac
			nsenter -m -t "${pid%/mountinfo}" umount -- "$1" 2>/dev/null || { busy=1; break; }
		done
		[ "$busy" ] || break
		using=$(find /proc/[0-9]*/fd /proc/[0-9]*/map_files /proc/[0-9]*/cwd /proc/[0-9]*/root -maxdepth 1 '(' -lname "$1" -o -lname "$1/*" ')' -printf '%p %l\n' 2>/dev/null | head -n 5)
		if [ "$using" ]; then
			echo "$using" | while read -r where file; do
				pid=${where#/proc/}; pid=${pid%%/*}
				echo "$(cat "/proc/$pid/comm") (process $pid) with $file"
			done
			exit 9
		fi
		tries=$((tries + 1)); sleep 0.1
	done
	[ "$busy" ] && exit 9
	shift 2
done
echo 2 > /proc/sys/vm/drop_caches`
	inUse = 9

	// finding comes upon them, past what the guest remembers of the places.
	finding = `
while [ $# -gt 0 ]; do
	tries=0
	until ls "$1/." > /dev/null; grep -qF " / $2 " /proc/self/mountinfo; do
		[ $tries -lt 50 ] || exit 1
		tries=$((tries + 1)); echo 2 > /proc/sys/vm/drop_caches; sleep 0.1
	done
	shift 2
done`
)

// mostUsers bounds what a guest says of who uses a volume, in bytes, and telling how long it may take.
const (
	mostUsers = 4 << 10
	telling   = 2 * time.Minute
)

// forget lets the guest unmount what it has mounted at some places, the innermost first.
func (s *remounting) forget(ctx context.Context, places []string) error {
	said, err := s.tell(ctx, forgetting, places)
	var run *host.RunError
	if !errors.As(err, &run) || run.Status != inUse {
		return s.untold(err)
	}
	who := strings.ReplaceAll(strings.TrimSpace(said), "\n", ", ")
	if who == "" {
		who = "something that the guest's kernel does not name"
	}
	return problem.New(problem.Failed, "node %s: a volume is in use by %s", s.m.ref.Name, who).At(s.m.ref.Site).Try("stop what uses it and run the same command again")
}

// find lets the guest find what is mounted at some places now.
func (s *remounting) find(ctx context.Context, places []string) error {
	_, err := s.tell(ctx, finding, places)
	return s.untold(err)
}

func (s *remounting) tell(ctx context.Context, script string, places []string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, telling)
	defer cancel()
	args := []string{"sh", "-c", script, "sh"}
	for _, place := range places {
		args = append(args, place, rootfs.Escape(place))
	}
	out, err := host.Output(ctx, s.in, host.Command{Args: args}, mostUsers)
	return visible.Text(string(out)), err
}

// untold says that a guest has not done what it was told.
func (s *remounting) untold(err error) error {
	if err == nil {
		return nil
	}
	return problem.New(problem.Failed, "node %s: its guest does not change its volumes", s.m.ref.Name).At(s.m.ref.Site).Because(err)
}
