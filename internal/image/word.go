package image

import "cmp"

// TrustedDigest returns the trusted digest of a layer (decision 42) from those that the hosts state, in
// the order of the site. This is the digest of this machine, whose index is own. If own is -1, this
// machine is not one of the hosts. Then it is the digest that most hosts state, or the first of
// several with the same count.
func TrustedDigest(said []string, own int) (content string) {
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
