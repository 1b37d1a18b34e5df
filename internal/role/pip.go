package role

import (
	"slices"
	"strings"
)

// pipArguments says what pip shall install. With hashes in the requirements, pip wants every package in the file and checks it; without,
// the file bounds the versions of what the roles name and of what that needs.
func pipArguments(packages []string, pins, file string) []string {
	if strings.TrimSpace(pins) == "" {
		return sorted(packages)
	}
	if strings.Contains(pins, "--hash=") {
		return []string{"--require-hashes", "--requirement", file}
	}
	return append([]string{"--constraint", file}, sorted(packages)...)
}

func sorted(words []string) []string {
	words = slices.Clone(words)
	slices.Sort(words)
	return slices.Compact(words)
}
