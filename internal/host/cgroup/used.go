package cgroup

import (
	"strconv"
	"strings"

	"orrery/internal/tree/rawfile"
)

// A DiskUse is what the processes of a group have read from a disk and written to it.
type DiskUse struct {
	Read, Written, Reads, Writes uint64 // bytes and requests
}

// DiskUseOf returns what a group has read and written so far, by the disk as "MAJOR:MINOR". It
// includes the groups below.
func DiskUseOf(g Group) map[string]DiskUse {
	all := map[string]DiskUse{}
	if !g.at.isV1("blkio") {
		text, _ := rawfile.ReadFile(g.file("io", "io.stat"))
		for line := range strings.Lines(string(text)) {
			if device, use, ok := parseIOStat(line); ok {
				all[device] = use
			}
		}
		return all
	}
	for _, f := range []struct {
		name        string
		read, write func(*DiskUse) *uint64
	}{
		{"blkio.throttle.io_service_bytes", func(u *DiskUse) *uint64 { return &u.Read },
			func(u *DiskUse) *uint64 { return &u.Written }},
		{"blkio.throttle.io_serviced", func(u *DiskUse) *uint64 { return &u.Reads },
			func(u *DiskUse) *uint64 { return &u.Writes }},
	} {
		text, err := rawfile.ReadFile(g.file("blkio", f.name+"_recursive"))
		if err != nil { // before Linux 5.5
			text, _ = rawfile.ReadFile(g.file("blkio", f.name))
		}
		for line := range strings.Lines(string(text)) {
			words := strings.Fields(line)
			if len(words) != 3 {
				continue
			}
			n, err := strconv.ParseUint(words[2], 10, 64)
			if err != nil {
				continue
			}
			use := all[words[0]]
			switch words[1] {
			case "Read":
				*f.read(&use) = n
			case "Write":
				*f.write(&use) = n
			}
			all[words[0]] = use
		}
	}
	return all
}

// parseIOStat parses a line of io.stat (cgroup-v2 of Linux).
func parseIOStat(line string) (device string, use DiskUse, ok bool) {
	words := strings.Fields(line)
	if len(words) < 2 || !strings.Contains(words[0], ":") {
		return "", use, false
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue
		}
		switch key {
		case "rbytes":
			use.Read = n
		case "wbytes":
			use.Written = n
		case "rios":
			use.Reads = n
		case "wios":
			use.Writes = n
		}
	}
	return words[0], use, true
}

// PeriodsOf returns in how many scheduling periods a group has wanted processors so far, and in how
// many of them its limit stopped it.
func PeriodsOf(g Group) (all, stopped uint64) {
	text, _ := rawfile.ReadFile(g.file("cpu", "cpu.stat"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil:
		case name == "nr_periods":
			all = n
		case name == "nr_throttled":
			stopped = n
		}
	}
	return all, stopped
}
