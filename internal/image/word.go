package image

import "cmp"

// Believed gives, of what hosts say is in a layer, in the order of the site, what is taken (decision 42): what this machine says, whose place among them is own, else what most of them say, else what the first of
// these says. Own is -1 if it is none of them.
func Believed(said []string, own int) (content string) {
	votes, first := map[string]int{}, map[string]int{}
	for i, c := range said {
		if _, has := first[c]; !has {
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
