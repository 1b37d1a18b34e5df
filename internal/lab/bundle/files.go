package bundle

import (
	"orrery/internal/host"
	"orrery/internal/tree"
)

// The names of the files in a bundle.
const (
	ManifestFile   = "bundle.json"
	ExperimentFile = "experiment.toml"
	SiteDir        = "site"
	FactsFile      = "facts.json"
	TrialsFile     = "trials.jsonl"
	SecondsFile    = "probes.jsonl"
	OutputDir      = "output"
	lockFile       = ".lock"
)

// IsLocked reports whether a run is writing the bundle. If the state of a head is Running and the
// bundle is not busy, the run was killed.
func IsLocked(dir string) bool {
	root, err := openDir(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	return isLocked(root)
}

func isLocked(root *tree.Root) bool {
	f, err := root.OpenFile(lockFile)
	if err != nil {
		return false
	}
	defer f.Close()
	return host.Flock(f, host.Shared) != nil
}
