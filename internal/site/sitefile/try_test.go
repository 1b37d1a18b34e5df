package sitefile
import ("testing";"encoding/json";"orrery/internal/site/selector")
func TestTry(t *testing.T){
 s,err:=Load("/tmp/s1"); if err!=nil {t.Fatal(err)}
 b,_:=json.MarshalIndent(s.Nodes[:2],""," ") ; t.Log(string(b))
 b,_=json.MarshalIndent(s.Roles,""," ") ; t.Log(string(b))
 for _,q:=range []string{"role=python","receptor1?","id=200..203,101 and not group=receptors","role!=python,portal", "prtal","role=pythn","(a","a b","a && b","rol=x","id=x","network=data","host=sv*"} {
  n,err:=selector.Select(s,q); t.Log(q,len(n),err)
 }
}
