package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/diskio"
	"orrery/internal/tree/rawfile"
)

// Limits of disks are set for each disk of the host. A file system may be on several disks, and a
// node's trees may be on several file systems, so what is declared holds for each of them.
//
// Version 1 has a file for each limit. It does not count what the kernel writes back from its cache,
// and its groups do not limit the groups below them. So a node must not create groups there, see
// diskGroup.close. Version 2 has none of these faults.

// A diskGroup is a control group, as far as disks are concerned.
type diskGroup struct{ Group }

// diskFilesV1 are the files of version 1, with the limit that each has.
var diskFilesV1 = []struct {
	name string
	of   func(*diskio.Limits) *int64
}{
	{"blkio.throttle.read_bps_device", func(l *diskio.Limits) *int64 { return (*int64)(&l.Read) }},
	{"blkio.throttle.write_bps_device", func(l *diskio.Limits) *int64 { return (*int64)(&l.Write) }},
	{"blkio.throttle.read_iops_device", func(l *diskio.Limits) *int64 { return &l.IOPS }},
	{"blkio.throttle.write_iops_device", func(l *diskio.Limits) *int64 { return &l.IOPS }},
}

// disks returns the disks of this host as "MAJOR:MINOR". Partitions belong to their disks. Disks in
// memory, and files that serve as disks, are not limited: files are on a disk themselves.
func disks() (all []string) {
	entries, _ := os.ReadDir("/sys/block")
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, "loop") || strings.HasPrefix(name, "ram") || strings.HasPrefix(name, "zram") {
			continue
		}
		dev, err := rawfile.ReadFile(filepath.Join("/sys/block", name, "dev"))
		size, _ := rawfile.ReadFile(filepath.Join("/sys/block", name, "size"))
		if err == nil && strings.TrimSpace(string(size)) != "0" { // a drive without a medium
			all = append(all, strings.TrimSpace(string(dev)))
		}
	}
	slices.Sort(all)
	return all
}

// diskFiles returns the files that set limits of disks. A limit of zero removes one.
func (p mountPoint) diskFiles(l diskio.Limits, devices []string) (all []File) {
	for _, device := range devices {
		if !p.isV1("blkio") {
			value := func(n int64) string {
				if n == 0 {
					return "max"
				}
				return strconv.FormatInt(n, 10)
			}
			all = append(all, File{Controller: "io", Name: "io.max", Value: fmt.Sprintf("%s rbps=%s wbps=%s riops=%s wiops=%s",
				device, value(int64(l.Read)), value(int64(l.Write)), value(l.IOPS), value(l.IOPS))})
			continue
		}
		for _, f := range diskFilesV1 {
			all = append(all, File{"blkio", true, f.name, fmt.Sprintf("%s %d", device, *f.of(&l))})
		}
	}
	return all
}

// changedFiles returns the files that change the limits of disks of a group to l.
func (g diskGroup) changedFiles(l diskio.Limits) []File {
	held := g.byDisk()
	var devices []string
	for device := range held {
		devices = append(devices, device)
	}
	if l != (diskio.Limits{}) {
		devices = append(devices, disks()...)
	}
	slices.Sort(devices)
	return g.at.diskFiles(l, slices.Compact(devices))
}

// byDisk returns the limits of a group by the disk.
func (g diskGroup) byDisk() map[string]diskio.Limits {
	all := map[string]diskio.Limits{}
	if !g.at.isV1("blkio") {
		text, _ := rawfile.ReadFile(g.file("io", "io.max"))
		for line := range strings.Lines(string(text)) {
			if device, l, ok := parseIOMax(line); ok {
				all[device] = l
			}
		}
		return all
	}
	for _, f := range diskFilesV1 {
		text, _ := rawfile.ReadFile(g.file("blkio", f.name))
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) != 2 {
				continue
			}
			n, err := strconv.ParseInt(words[1], 10, 64)
			if l := all[words[0]]; err == nil {
				*f.of(&l) = n
				all[words[0]] = l
			}
		}
	}
	return all
}

// parseIOMax parses a line of io.max (cgroup-v2 of Linux). If the numbers of requests differ, it
// returns the lower one, which no declaration has.
func parseIOMax(line string) (device string, l diskio.Limits, ok bool) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return "", l, false
	}
	iops := map[string]int64{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil { // "max"
			n = 0
		}
		switch key {
		case "rbps":
			l.Read = diskio.Rate(n)
		case "wbps":
			l.Write = diskio.Rate(n)
		case "riops", "wiops":
			iops[key] = n
		}
	}
	l.IOPS = min(iops["riops"], iops["wiops"])
	return words[0], l, true
}

// inForce returns the limits of disks that are in force: want, if all disks have them and no group
// below is without, or else those of a disk that has others.
func (g diskGroup) inForce(want diskio.Limits) diskio.Limits {
	held := g.byDisk()
	if want == (diskio.Limits{}) {
		for _, l := range held {
			if l != want {
				return l
			}
		}
		return want
	}
	for _, device := range disks() {
		if held[device] != want {
			return held[device]
		}
	}
	if g.at.isV1("blkio") && g.open() {
		return diskio.Limits{}
	}
	return want
}

// open reports whether someone other than root can create groups in the group, or has.
func (g diskGroup) open() bool {
	var st unix.Stat_t
	dir := g.file("blkio", "")
	if unix.Stat(dir, &st) != nil {
		return false
	}
	below, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
	return st.Uid != 0 || st.Gid != 0 && st.Mode&0o020 != 0 || st.Mode&0o002 != 0 || len(below) > 0
}

// close makes the group of version 1 root's, so that an unprivileged node cannot create
// groups in it, which would have no limits. It removes those that the node has already created, and
// moves their processes up.
func (g diskGroup) close() error {
	dir := g.file("blkio", "")
	for _, name := range []string{"", "cgroup.procs", "tasks"} {
		if err := os.Lchown(filepath.Join(dir, name), 0, 0); err != nil {
			return err
		}
	}
	const tries = 100 // a process may fork while it is moved
	for range tries {
		if !g.open() {
			return nil
		}
		if err := fold(dir, dir, 0); err != nil {
			return err
		}
	}
	return errors.New("groups below it come again")
}

// fold removes the groups below one, and moves their processes to top.
func fold(top, dir string, depth int) error {
	const deepest = 64
	entries, err := os.ReadDir(dir)
	if err != nil || depth > deepest {
		return ignoreNotExist(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		below := filepath.Join(dir, e.Name())
		if err := ignoreNotExist(os.Lchown(below, 0, 0)); err != nil {
			return err
		}
		if err := fold(top, below, depth+1); err != nil {
			return err
		}
		text, _ := rawfile.ReadFile(filepath.Join(below, "tasks"))
		for task := range strings.FieldsSeq(string(text)) {
			// A task may have ended.
			_ = os.WriteFile(filepath.Join(top, "tasks"), []byte(task), 0)
		}
		_ = unix.Rmdir(below) // or the next try does
	}
	return nil
}

// CloseDisks makes sure that an unprivileged node that has just started cannot leave its limits of
// disks.
func (g Group) CloseDisks(node string, l diskio.Limits) error {
	if l == (diskio.Limits{}) || !g.at.isV1("blkio") {
		return nil
	}
	if err := (diskGroup{g}).close(); err != nil {
		return problem.New(problem.Failed, "node %s: its disks cannot be limited", node).At(g.file("blkio", "")).Because(err)
	}
	return nil
}

// LacksDiskLimits returns why this host cannot limit disks, or the zero Missing.
func LacksDiskLimits() (none observe.Missing) { return hostMount.lacksDiskLimits() }

func (p mountPoint) lacksDiskLimits() (none observe.Missing) {
	if p.isV1("blkio") {
		return none
	}
	text, _ := rawfile.ReadFile(filepath.Join(string(p), "cgroup.controllers"))
	if slices.Contains(strings.Fields(string(text)), "io") {
		return none
	}
	return observe.Missing{What: "disks cannot be limited, because there is no controller io (version 2) or blkio (version 1)",
		Cure: "use a kernel with CONFIG_BLK_CGROUP and CONFIG_BLK_DEV_THROTTLING; mount blkio on a host with version 1"}
}
