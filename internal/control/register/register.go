// Package register keeps what is known on a host of its sites: which are up and from which directory, which twins there are of them, and from what their
// releases were staged. It is files beside the state of each site, which only root writes; there is no other database.
package register

import (
	"orrery/internal/host"
	"orrery/internal/site/twin"
)

// A Register is what is known of sites in the directories of a host.
type Register struct {
	Dirs  host.Dirs
	Known map[string]twin.Record // what hosts have on record of twins, by key
}
