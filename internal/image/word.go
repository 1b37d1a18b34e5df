package image

import "cmp"

// Believed returns which digest of a layer is trusted (decision 42), of those that hosts state, in the order
// of the site: this machine's, whose index is own, else the one that most hosts state, else the first of
// these. Own is -1 if this machine is none of the hosts.
func Believed(said []string, own int) (content string) {
	votes, first := map[string]int{}, map[string]int{}
	for i, c := range said {
		if _, ok := first[c]; !ok {
			first[c] = i
		}
		votes[c]++
		if i == own {
			votes[c] += len(said)
		}
	}
	for c, n := range votes {
		if content == "" || cmp.Or(cmp.Compare(n, votes[content]), cmp.Compare(first[content], first[c])) > 0 {
			content = c
		}
	}
	return content
}
