package journal

import "slices"

// Merge returns the entries of the journals of several hosts by their times, and says of each on
// which hosts it is. What a run has noted on all of them, such as that it has begun, is there once.
// The entries of one host stay in their order, whatever became of its clock.
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
			all[n].Hosts = append(all[n].Hosts, hosts[first])
			continue
		}
		e.Hosts = []string{hosts[first]}
		all = append(all, e)
	}
	return all
}

// same reports whether two hosts have noted the same of a run as a whole.
func same(a, b *Entry) bool {
	return (a.Kind == "begin" || a.Kind == "end") && a.Run == b.Run && a.Kind == b.Kind && a.Time.Equal(b.Time) &&
		a.Who == b.Who && a.Command == b.Command && a.Result == b.Result
}
