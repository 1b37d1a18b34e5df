package journal

import "slices"

// Merge returns the entries of several hosts' journals in the order of their times, with the hosts
// of each entry. An entry that a run wrote to all of them, such as its begin, appears once. The
// entries of one host keep their order, even if its clock was wrong.
func Merge(hosts []string, journals [][]Entry) []Entry {
	rest, left := slices.Clone(journals), 0
	for _, j := range rest {
		left += len(j)
	}
	all := make([]Entry, 0, left)
	for ; left > 0; left-- {
		first := -1
		for i := range rest {
			if len(rest[i]) > 0 && (first < 0 || rest[i][0].Time.Before(rest[first][0].Time)) {
				first = i
			}
		}
		e := rest[first][0]
		rest[first] = rest[first][1:]
		if n := len(all) - 1; n >= 0 && same(&all[n], &e) {
			if e.State == Running {
				all[n].State = Running
			}
			all[n].Hosts = append(all[n].Hosts, hosts[first])
			continue
		}
		e.Hosts = []string{hosts[first]}
		all = append(all, e)
	}
	clearEnded(all)
	return all
}

// clearEnded removes the states of runs that have ended on any host: the others lost the connection.
func clearEnded(all []Entry) {
	ended := map[string]bool{}
	for i := range all {
		if all[i].Kind == "end" {
			ended[all[i].Run] = true
		}
	}
	for i := range all {
		if ended[all[i].Run] {
			all[i].State = ""
		}
	}
}

// same reports whether two entries of different hosts are the same begin or end of a run.
func same(a, b *Entry) bool {
	return (a.Kind == "begin" || a.Kind == "end") && a.Run == b.Run && a.Kind == b.Kind && a.Time.Equal(b.Time) &&
		a.Who == b.Who && a.Command == b.Command && a.Result == b.Result
}
