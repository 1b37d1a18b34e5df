// Package register records what a host knows of its sites: which are up and from which directory,
// their twins, and where their releases were staged from. The records are files beside the state of each
// site, which only root writes; there is no other database.
package register

import (
	"sync"

	"orrery/internal/host"
	"orrery/internal/site/twin"
)

// A Register is what is known of sites in the directories of a host.
type Register struct {
	Dirs  host.Dirs
	Known *Known // goes before what is on this host's record; nil: nothing does
}

// Known is what the hosts of sites have on record of twins, as far as they were asked. Several
// operations may use it at once.
type Known struct {
	mutex sync.Mutex
	twins map[string]twin.Record // by key
}

// Add notes what hosts have on record of a twin.
func (k *Known) Add(r twin.Record) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.twins == nil {
		k.twins = map[string]twin.Record{}
	}
	k.twins[r.Key()] = r
}

// Forget forgets a twin that has ended, or of which hosts do not know any more.
func (k *Known) Forget(key string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.twins, key)
}

// Twin returns the record of the twin of a key, if hosts were asked. A nil Known has none.
func (k *Known) Twin(key string) (r twin.Record, ok bool) {
	if k == nil {
		return r, false
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	r, ok = k.twins[key]
	return r, ok
}
