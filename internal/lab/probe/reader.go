package probe

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A reader holds everything that is read, with the values of the previous reading.
type reader struct {
	at      time.Time // of the last reading
	sources []source
	files   []*file
	groups  []*cgroup
}

// A source adds the changes since its last call to a second.
type source interface{ sample(s *Second) }

func newReader(root string, cgroups map[string]string) *reader {
	r := &reader{}
	open := func(path string) *file {
		f := newFile(filepath.Join(root, path))
		r.files = append(r.files, f)
		return f
	}
	heat := findThrottles(root)
	r.files = append(r.files, heat.files...)
	// Read the processors first, before the reading itself takes processor time.
	r.sources = []source{&processors{file: open("proc/stat")}, &ownUsage{}}
	h := findHierarchy(root)
	for name, path := range cgroups {
		c := newCgroup(h, path)
		c.name = name
		r.groups = append(r.groups, c)
	}
	slices.SortFunc(r.groups, func(a, b *cgroup) int { return strings.Compare(a.name, b.name) })
	for _, c := range r.groups {
		r.sources = append(r.sources, c)
	}
	r.sources = append(r.sources,
		&links{file: open("proc/net/dev")}, &softnet{file: open("proc/net/softnet_stat")}, &snmp{file: open("proc/net/snmp")},
		&disks{file: open("proc/diskstats")}, &stalls{
			pressure{file: open("proc/pressure/cpu")}, pressure{file: open("proc/pressure/io")},
			pressure{file: open("proc/pressure/memory")},
		},
		&swap{file: open("proc/vmstat")}, heat, &load{open("proc/loadavg")},
	)
	return r
}

// read returns the changes since the last call.
func (r *reader) read() Second {
	now := time.Now()
	s := Second{At: now, Took: now.Sub(r.at).Round(time.Microsecond).Seconds()}
	r.at = now
	for _, source := range r.sources {
		source.sample(&s)
	}
	return s
}

func (r *reader) close() {
	for _, f := range r.files {
		f.close()
	}
	for _, c := range r.groups {
		c.close()
	}
}
