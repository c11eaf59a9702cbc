"use strict";(()=>{var Ot="http://www.w3.org/2000/svg";function ze(s,e,t){for(let[n,r]of Object.entries(e))typeof r=="function"?s.addEventListener(n.replace(/^on/,""),r):r===!0?s.
setAttribute(n,""):r!==void 0&&r!==!1&&s.setAttribute(n,String(r));s.append(...t)}function u(s,e={},...t){let n=document.createElement(s);return ze(n,e,t),n}function M(s,e={},...t){
let n=document.createElementNS(Ot,s);return ze(n,e,t),n}function Q(s){let e=document.getElementById(s);if(!e)throw new Error(`the page has no #${s}`);return e}var Ht=[[1e9,"s"],[1e6,"ms"],[1e3,"µs"]],It=[[1e12,"TB"],[1e9,"GB"],[1e6,"MB"],[1e3,"kB"]],Ut=.9995,Ke=new Intl.NumberFormat("en",{maximumFractionDigits:0});function Xe(s){
let e=Math.abs(s);return e>=99.95?Ke.format(s):e>=9.995?s.toFixed(1):s.toFixed(2)}function Ye(s,e,t){for(let[n,r]of e)if(Math.abs(s)>=n*Ut)return`${Xe(s/n)} ${r}`;
return`${s.toFixed(0)} ${t}`}var k=s=>Ye(s,Ht,"ns"),P=s=>Ye(s,It,"B"),H=(s,e)=>e?`${(100*s/e).toFixed(1)} %`:"–",N=s=>`${Xe(s)}×`,_=s=>Ke.format(s),G=(s,e,t=`${e}\
s`)=>`${_(s)} ${_(s)==="1"?e:t}`;function Nt(s,{launches:e,cpu_ns:t,gpu_ns:n,fewer:r}){let o=e*t,i=e*n,l=e===s.launches&&t===s.cpu_ns&&n===s.gpu_ns;return{dispatch_ns:o,work_ns:i,step_ns:l&&s.step_ns!==
null?s.step_ns:Math.max(o,i),graph_ns:l&&s.graph_ns!==null?s.graph_ns:s.graph_launch_ns+i+e*s.graph_gap_ns,fused_ns:Math.max(o/r,i),bound:o>i?"CPU":"GPU",crossover:t?
i/t:null}}function qe(s,e){let t=u("div",{role:"status","aria-live":"polite"}),n={launches:s.launches,cpu_ns:s.cpu_ns,gpu_ns:s.gpu_ns,fewer:4},r=(c,d,h,m)=>{let p=w=>String(
Math.round(w/h*100)/100),f=n[d],g=u("input",{type:"number",min:m,step:"any",value:p(f)});return g.addEventListener("input",()=>{let w=Number(g.value);g.setAttribute(
"aria-invalid",String(!(Number.isFinite(w)&&w>=m))),!(!Number.isFinite(w)||w<m)&&(n[d]=g.value===p(f)?f:w*h,a())}),[u("label",{},`${c} `,g),g]},o=[r("Launches p\
er step","launches",1,1),r("CPU time per launch, µs","cpu_ns",1e3,0),r("GPU time per launch, µs","gpu_ns",1e3,0),r("Fusion: times fewer launches","fewer",1,1)],
i=o.map(([,c])=>c.value),l=u("button",{type:"button",onclick:()=>o.forEach(([,c],d)=>{c.value=i[d]??"",c.dispatchEvent(new Event("input"))})},"This trace");function a(){
let c=Nt(s,n),d=(m,p)=>[u("dt",{},m),u("dd",{},p)],h=m=>`${k(m)} (${N(c.step_ns/Math.max(m,1))})`;t.replaceChildren(u("p",{class:"strong"},`Bound by ${c.bound===
"CPU"?"dispatch on the CPU":"the GPU"}: a step takes ${k(c.step_ns)}.`),u("dl",{},...d("to dispatch",k(c.dispatch_ns)),...d("to run",k(c.work_ns)),...c.crossover===
null?[]:d("crossover",`the GPU is the limit below ${G(c.crossover,"launch","launches")} for the same GPU time`),...d("as one CUDA graph",h(c.graph_ns)),...d(`wi\
th ${n.fewer} times fewer launches`,h(c.fused_ns))))}e.append(u("div",{class:"budget"},u("div",{class:"fields"},...o.map(([c])=>c),u("p",{},l)),t)),a()}var oe=18,Gt=7.1,Dt=.6;function Bt(s,e){let t=new Map;s.parent.forEach((c,d)=>t.set(c,[...t.get(c)??[],d]));let n=c=>s.total_ns[c]??0;for(let c of t.values())c.
sort((d,h)=>n(h)-n(d));let r=[],o=[];for(let c=e;c>=0;c=s.parent[c]??-1)o.unshift(c);o.forEach((c,d)=>r.push({node:c,depth:d,left:0,width:1}));let i=e>=0?[e]:t.
get(-1)??[],l=i.reduce((c,d)=>c+n(d),0)||1,a=(c,d,h)=>{for(let m of c){let p=n(m)/l;m!==e&&r.push({node:m,depth:d,left:h,width:p}),a(t.get(m)??[],d+1,h),h+=p}};
return a(i,Math.max(o.length-1,0),0),r}function Ve(s,e){let t=u("select",{"aria-label":"Flame graph"},...s.flames.map((f,g)=>u("option",{value:g},`${f.name}, ${k(
Re(f))}`))),n=u("input",{type:"search",placeholder:"Highlight","aria-label":"Highlight frames"}),r=u("button",{type:"button"},"Whole graph"),o=u("p",{class:"qui\
et",role:"status"}),i=M("svg",{class:"flame",role:"group","aria-label":"Flame graph. Arrow keys move, Enter zooms, Escape zooms out."});e.append(u("p",{class:"t\
ools"},t," ",n," ",r),i,o,u("p",{class:"quiet"},"Width is time, a caller above what it calls. Each moment of a thread belongs to its innermost frame, op or call\
, so nothing is counted twice; GPU time is the sum of durations, below the stack that launched it. Frames under 0.02 % are left out."));let l=-1,a=-1;function c(){
let f=s.flames[Number(t.value)];if(!f)return;let g=Math.max(i.clientWidth||e.clientWidth||1e3,300),w=n.value.toLowerCase(),T=Bt(f,l).filter(y=>y.width*g>=Dt);new Set(
T.map(y=>y.node)).has(a)||(a=T[0]?.node??-1);let x=Math.max(0,...T.map(y=>y.depth));i.setAttribute("viewBox",`0 0 ${g} ${(x+1)*oe}`);let v=i.contains(document.activeElement);
i.replaceChildren(...T.map(y=>d(f,y,g,w))),v&&m(),r.disabled=l<0,o.textContent=l<0?`${f.name}: ${k(Re(f))}`:de(f,l)}function d(f,g,w,T){let $=f.frames[f.frame[g.
node]??0]??"",x=g.left*w,v=g.width*w,y=Math.floor((v-6)/Gt),A=Wt($),L=y<3?"":A.length<=y?A:`${A.slice(0,y-1)}…`,C=T!==""&&$.toLowerCase().includes(T),O=()=>{l=
g.node,a=g.node,c()},R=M("g",{class:`frame ${zt($)}${C?" match":T?" faded":""}`,"data-node":g.node,tabindex:g.node===a?0:-1,role:"button","aria-label":de(f,g.node),
onclick:O,onfocus:()=>{a=g.node,o.textContent=de(f,g.node)}},M("title",{},de(f,g.node)),M("rect",{x,y:g.depth*oe,width:Math.max(v-.5,.3),height:oe-1}),...L?[M("\
text",{x:x+3,y:g.depth*oe+oe/2},L)]:[]);return R.addEventListener("keydown",I=>{h(f,g,I,O)}),R}function h(f,g,w,T){let $=Ft(f,g.node,w.key);if(w.key==="Enter"||
w.key===" ")T();else if(w.key==="Escape")l=-1,c();else if($!==null)$>=0&&i.querySelector(`[data-node="${$}"]`)&&(a=$,c());else return;w.preventDefault()}function m(){
i.querySelector(`[data-node="${a}"]`)?.focus()}let p=()=>{l=-1,c()};t.addEventListener("change",p),r.addEventListener("click",p),n.addEventListener("input",c),new ResizeObserver(
c).observe(e),c()}var Re=s=>s.parent.reduce((e,t,n)=>e+(t<0?s.total_ns[n]??0:0),0);function de(s,e){let t=s.total_ns[e]??0;return`${s.frames[s.frame[e]??0]??""}\
: ${k(t)}, ${H(t,Re(s))}`}function Ft(s,e,t){let n=l=>s.total_ns[l]??0,r=s.parent[e]??-1,o=l=>s.parent.flatMap((a,c)=>a===l?[c]:[]).sort((a,c)=>n(c)-n(a));if(t===
"ArrowUp")return r;if(t==="ArrowDown")return o(e)[0]??-1;if(t!=="ArrowLeft"&&t!=="ArrowRight")return null;let i=o(r);return i[i.indexOf(e)+(t==="ArrowRight"?1:-1)]??
-1}var Wt=s=>s.replace(/^.*\/(?=[^/]*\(\d+\): )/,"").replace(/^void /,"");function zt(s){return/\(\d+\): |^<built-in|^nn\.Module/.test(s)?"python":/^(cuda|cu|hip)[A-Z]/.
test(s)?"api":/^(aten|autograd|torch|c10d|nccl|prims|inductor)::|Backward\d*$/.test(s)?"op":/[<(]|kernel|gemm|^Mem(cpy|set)/i.test(s)?"kernel":"range"}var ee=1e3,ue=220,Y=76,he=12,Kt=12,je=26,Xt=3;function Yt(s,e){let t=0,n=s.length;for(;t<n;){let r=t+n>>1;(s[r]??0)<=e?t=r+1:n=r}return Math.max(t-1,0)}function Je(s,e,t){
for(let n of s.curves)e.append(...qt(n,t))}function qt(s,e){let t=s.times_ns[0]??0,n=Math.max(s.times_ns.at(-1)??0,t+1),r=Math.max(1,...s.allocated_bytes),o=Math.
max(0,...s.reserved_bytes),i=s.allocated_bytes.indexOf(r),l=o<=Xt*r?Math.max(r,o):r,a=v=>Y+(v-t)/(n-t)*(ee-Y-he),c=v=>ue-je-v/l*(ue-Kt-je),d=v=>v.map((y,A)=>`${A?
`H${a(s.times_ns[A]??0).toFixed(1)}V`:`M${a(t)} `}${c(y).toFixed(1)}`).join("")+`H${ee-he}`,h=u("p",{class:"quiet",role:"status"}),m=v=>{let y=s.reserved_bytes[v];
h.textContent=`${k(s.times_ns[v]??0)}: ${P(s.allocated_bytes[v]??0)} allocated${y===void 0?"":`, ${P(y)} reserved`}`},p=v=>{let y=$.getBoundingClientRect(),A=(v.
clientX-y.left)/y.width*ee;return Yt(s.times_ns,t+(A-Y)/(ee-Y-he)*(n-t))},f=v=>{let y=s.times_ns[v]??0,A=(n-t)/50;e.goTo(y-A,y+A)},g=i,w=M("circle",{r:4,class:"\
mark",cx:0,cy:0}),T=v=>{g=v,w.setAttribute("cx",String(a(s.times_ns[v]??0))),w.setAttribute("cy",String(c(s.allocated_bytes[v]??0))),m(v)},$=M("svg",{viewBox:`0\
 0 ${ee} ${ue}`,class:"chart memory",role:"slider",tabindex:0,"aria-label":`Memory of ${s.title}, peak ${P(s.allocated_bytes[i]??0)}`,"aria-valuemin":0,"aria-va\
luemax":s.times_ns.length-1,"aria-valuenow":i,onmousemove:v=>T(p(v)),onclick:v=>f(p(v)),onkeydown:v=>{let{key:y}=v,A=y==="ArrowRight"?1:y==="ArrowLeft"?-1:0;A?(v.
preventDefault(),T(Math.min(Math.max(g+A,0),s.times_ns.length-1)),$.setAttribute("aria-valuenow",String(g)),$.setAttribute("aria-valuetext",h.textContent??"")):
y==="Enter"&&f(g)}});for(let v of[0,.5,1])$.append(M("path",{class:"grid",d:`M${Y} ${c(v*l)}H${ee-he}`}),M("text",{x:Y-8,y:c(v*l),class:"end dim"},P(v*l)));for(let v of[
0,.25,.5,.75,1])$.append(M("text",{x:a(t+v*(n-t)),y:ue-8,class:v===1?"end dim":"middle dim"},k(t+v*(n-t))));l>=o&&o&&$.append(M("path",{class:"reserved",d:d(s.reserved_bytes)})),
$.append(M("path",{class:"area",d:`${d(s.allocated_bytes)}V${c(0)}H${Y}z`}),M("path",{class:"allocated",d:d(s.allocated_bytes)}),w),T(i);let x=o?`, ${P(o)} rese\
rved${o>l?" (far above the picture)":" (dashed)"}`:"";return[u("h3",{},s.title,u("small",{},`peak ${P(r)} allocated${x}`)),$,h]}function Ze(s,e){e.append(u("dl",{class:"numbers"},...s.entries.flatMap(t=>[u("dt",{},t.number),u("dd",{},...t.value?[u("b",{},t.value)," "]:[],t.how)])))}var Vt=15,jt=(s,e)=>{if(s===null||s==="")return"–";if(typeof s=="string")return s;switch(e){case"ns":return k(s);case"bytes":return P(s);case"bytes_per_second":
return`${P(s)}/s`;case"share":return H(s,1);case"gain":return N(s);case"count":return _(s);default:return String(Math.round(s*100)/100)}};function Jt(s,e){let t=e.
falling?-1:1;return[...s].sort((n,r)=>{let o=n[e.column]??null,i=r[e.column]??null;return o===null||i===null?+(o===null)-+(i===null):typeof o=="number"&&typeof i==
"number"?t*(o-i):t*String(o).localeCompare(String(i),"en")})}function Zt(s,e){let t=e.toLowerCase().split(/\s+/).filter(Boolean);return s.filter(n=>{let r=n.filter(
o=>typeof o=="string").join(" ").toLowerCase();return t.every(o=>r.includes(o))})}function Qt(s,e,t){let n=e.flatMap((a,c)=>a.sums?[c]:[]),r=new Map;for(let a of s){
let c=String(a[t]??"–"),d=r.get(c)??[0,...n.map(()=>0)];d[0]=(d[0]??0)+1,n.forEach((h,m)=>{d[m+1]=(d[m+1]??0)+Number(a[h]??0)}),r.set(c,d)}let o=[t,...n].flatMap(
a=>e[a]??[]),[i,...l]=o;return{columns:[...i?[i]:[],{title:"rows",unit:"count",group:!1,sums:!0},...l],rows:[...r].map(([a,c])=>[a,...c])}}var et=[],tt=s=>et.some(
e=>e(s));function nt(s,e,t){for(let n of s.tables)e.append(en(n,t))}function en(s,e){let t=null,n=null,r=!1,o=`table-${s.title.toLowerCase().replace(/\W+/g,"-")}`,
i=u("input",{type:"search",placeholder:"Filter","aria-label":`Filter ${s.title.toLowerCase()}`,oninput:()=>w()}),l=s.columns.flatMap((x,v)=>x.group?[u("option",
{value:v},x.title)]:[]),a=u("select",{"aria-label":`Group ${s.title.toLowerCase()} by`,onchange:()=>{n=a.value===""?null:Number(a.value),t=null,w()}},u("option",
{value:""},"not grouped"),...l),c=u("span",{class:"quiet",role:"status"}),d=u("thead"),h=u("tbody"),m=u("button",{type:"button",onclick:()=>{r=!0,w()}},"Show al\
l"),p=u("caption",{class:"sr"},s.title),f=u("div",{class:"table-view",id:o},u("h3",{},s.title),u("p",{class:"tools"},i," ",...l.length?[u("label",{},"group by ",
a)," "]:[],c),u("div",{class:"wide"},u("table",{},p,d,h)),m),g=(x,v)=>{t={column:x,falling:t?.column===x?!t.falling:!v},w(x)};function w(x){let v=Zt(s.rows,i.value),
y=n===null?{columns:[...s.columns],rows:v}:Qt(v,s.columns,n),A=Jt(y.rows,t??Qe(y.columns)),L=r||n!==null?A:A.slice(0,Vt),C=t??Qe(y.columns);d.replaceChildren(u(
"tr",{},...y.columns.map((R,I)=>T(R,I,C)))),h.replaceChildren(...L.map(R=>u("tr",{},...y.columns.map((I,X)=>$(R,I,X))))),x!==void 0&&d.querySelectorAll("button")[x]?.
focus();let O=s.left_out?`; ${G(s.left_out,"shorter one")} not on this page`:"";c.textContent=`${G(L.length,n===null?"row":"group")} of ${_(n===null?s.rows.length:
A.length)}${O}`,m.hidden=L.length===A.length,m.textContent=`Show all ${_(A.length)}`}function T(x,v,y){let A=x.unit==="text",L=y.column===v,C=u("button",{type:"\
button",class:"sort",onclick:()=>g(v,A)},x.title,u("span",{"aria-hidden":"true"},L?y.falling?" ▾":" ▴":""));return u("th",{scope:"col",class:A?"":"number","\
aria-sort":L?y.falling?"descending":"ascending":"none"},C)}function $(x,v,y){let A=jt(x[y]??null,v.unit);if(y>0)return u("td",{class:v.unit==="text"?"":"number"},
A);let L=n===null?()=>e.search(A):()=>{i.value=A,n=null,a.value="",w()};return u("th",{scope:"row",class:"name"},u("button",{type:"button",class:"link",title:n===
null?`${A}
Show it on the timeline`:"Show its rows",onclick:L},A))}return et.push(x=>s.rows.some(v=>v[0]===x)?(i.value=x,n=null,a.value="",w(),f.scrollIntoView({block:"nea\
rest"}),!0):!1),w(),f}function Qe(s){let e=s.findIndex(t=>t.unit==="ns");return{column:Math.max(e,0),falling:e>=0}}var te=1e3,W=520,ie=74,me=24,rt=20,pe=46;function tn(s){let e=[...s.dots.map(o=>o.intensity),...s.compute.map(o=>o.value/s.memory.value)].map(Math.log10),t=[...s.
dots.map(o=>o.flops_per_second),...s.compute.map(o=>o.value)].map(Math.log10),n=o=>Math.floor(Math.min(...o)),r=o=>Math.ceil(Math.max(...o)+.05);return{x:[n(e),
r(e)],y:[n(t),r(t)]}}function it(s){let[e,t]=s>=1e12?[1e12,"T"]:s>=1e9?[1e9,"G"]:[1e6,"M"];return`${(s/e).toPrecision(3)} ${t}FLOP/s`}function at(s,e,t){let{x:[
n,r],y:[o,i]}=tn(s),l=y=>ie+(Math.log10(y)-n)/(r-n)*(te-ie-me),a=y=>W-pe-(Math.log10(y)-o)/(i-o)*(W-rt-pe),c=M("svg",{viewBox:`0 0 ${te} ${W}`,class:"chart roof\
line",role:"group","aria-label":`Roofline of ${s.device}, ${s.dots.length} ops. Arrow keys move between them.`});for(let y=n;y<=r;y++){let A=l(10**y);c.append(M(
"path",{class:"grid",d:`M${A} ${rt}V${W-pe}`}),M("text",{x:A,y:W-pe+16,class:"middle dim"},st(y)))}for(let y=o;y<=i;y++){let A=a(10**y);c.append(M("path",{class:"\
grid",d:`M${ie} ${A}H${te-me}`}),M("text",{x:ie-8,y:A,class:"end dim"},st(y-12)))}c.append(M("text",{x:(ie+te)/2,y:W-8,class:"middle dim"},"arithmetic intensity\
 (FLOP per byte)"),M("text",{x:16,y:W/2,class:"middle dim",transform:`rotate(-90 16 ${W/2})`},"TFLOP/s"));let d=s.memory.value,h=Math.max(...s.compute.map(y=>y.
value),10**o),m=Math.max(10**n,10**o/d),p=[l(m),a(m*d)],f=[l(h/d),a(h)],g=Math.atan2(f[1]-p[1],f[0]-p[0])*180/Math.PI,[w,T]=[.72*p[0]+.28*f[0],.72*p[1]+.28*f[1]],
$=[M("text",{x:w,y:T-11,class:"middle roof-name",transform:`rotate(${g} ${w} ${T})`},`memory ${P(d)}/s, ${s.memory.source}`)];c.append(M("path",{class:"roof",d:`\
M${p.join(" ")}L${f.join(" ")}`}));let x=-1/0;for(let y of s.compute){let A=a(y.value);c.append(M("path",{class:"roof",d:`M${l(y.value/d)} ${A}H${te-me}`})),A-x>=
14&&($.push(M("text",{x:te-me-4,y:A-9,class:"end roof-name"},`${y.name} ${it(y.value)}, ${y.source}`)),x=A)}let v=u("p",{class:"quiet",role:"status"},`${s.device}\
. The drawn ops take ${H(s.drawn_ns,s.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or use the arrow keys.`);c.append(...nn(s,l,a,v,t),
...$),e.append(c,rn(),v)}var st=s=>s>=-4&&s<=4?String(10**s):`1e${s}`;function ot(s,e){let t=s.roof_pct===null?"":`, ${s.roof_pct.toFixed(1)} % of its roof`;return`${s.
name} ${s.shapes}: ${k(s.time_ns)} in ${_(s.calls)} calls (${H(s.time_ns,e)} of GPU time), ${it(s.flops_per_second)}${t}${s.bound?`, ${s.bound}-bound`:""}`}function nn(s,e,t,n,r){
let o=Math.max(...s.dots.map(a=>a.time_ns)),i=[],l=a=>{i.forEach((d,h)=>{d.setAttribute("tabindex",h===a?"0":"-1"),d.classList.toggle("selected",h===a)});let c=s.
dots[a];c&&(n.textContent=ot(c,s.total_ns))};return s.dots.forEach((a,c)=>{let d=()=>{l(c),tt(a.name)||r.search(a.name)},h=f=>{let{key:g}=f,w=g==="ArrowRight"||
g==="ArrowDown"?1:g==="ArrowLeft"||g==="ArrowUp"?-1:0;if(w){f.preventDefault();let T=(c+w+i.length)%i.length;l(T),i[T]?.focus()}else(g==="Enter"||g===" ")&&(f.preventDefault(),
d())},m=ot(a,s.total_ns),p=3.5+13*Math.sqrt(a.time_ns/o);i.push(M("circle",{cx:e(a.intensity),cy:t(a.flops_per_second),r:p,class:`dot ${a.bound||"unknown-bound"}`,
tabindex:c===0?0:-1,role:"button","aria-label":m,onclick:d,onkeydown:h,onfocus:()=>l(c)},M("title",{},m)))}),i}function rn(){let s=e=>u("li",{},M("svg",{class:"\
swatch",viewBox:"0 0 10 10","aria-hidden":"true"},M("circle",{cx:5,cy:5,r:5,class:`dot ${e}`})),`${e}-bound`);return u("ul",{class:"legend"},...["compute","memo\
ry","latency"].map(s))}var ae=120,lt=1e3,sn=48;function ct(s,e,t){let n=s.lengths_ns.length,r=Math.max(1,...s.lengths_ns),o=Math.min(sn,lt/n),i=Math.max(.5,o*.82),l=M("svg",{viewBox:`\
0 0 ${lt} ${ae}`,class:"steps",role:"img","aria-label":`${n} steps, the longest ${k(r)}`});s.lengths_ns.forEach((a,c)=>{let d=s.busy_ns[c]??0,h=s.starts_ns[c]??
0,m=c*o,p=a/r*ae,f=d/r*ae,g=M("g",{class:"step-bar",onclick:()=>t.goTo(h,h+a)},M("title",{},`step ${c}: ${k(a)}, GPU busy ${H(d,a)}`),M("rect",{x:m,width:i,y:ae-
p,height:p,class:"part idle"}),M("rect",{x:m,width:i,y:ae-f,height:f,class:"part compute"}));l.append(g)}),e.append(l,u("p",{class:"quiet"},`Height: length of t\
he step, the longest ${k(r)}; dark: GPU busy. Click a step to see it on the timeline.`))}var dt=1e3,D=70,on=190,q=22,Pe=12;function an(s,e){return s.replayed.find(t=>t.fixes.length===e.size&&t.fixes.every(n=>e.has(n)))}function ln(s,e){let t=[...e].
sort((n,r)=>n-r).map(n=>`--fix ${s.fixes[n]?.name??""}`);return["warpline whatif",cn(s.file),...t].join(" ")}var cn=s=>/^[\w./:@%+=-]+$/.test(s)?s:`'${s.replaceAll(
"'",`'"'"'`)}'`;function ut(s,e){let t=new Set,n=[],r=u("div",{class:"whatif-answer",role:"status","aria-live":"polite"}),o=()=>{n.forEach((c,d)=>{c.checked=t.has(
d)}),r.replaceChildren(...dn(s,t))},i=c=>{t.clear();for(let d of c)t.add(d);o()},l=u("fieldset",{class:"fixes"},u("legend",{},"Fixes"));s.fixes.forEach((c,d)=>{
let h=u("input",{type:"checkbox",onchange:()=>{t.delete(d)||t.add(d),o()}});n.push(h);let m=s.planned.indexOf(d),p=[c.effort,c.confidence?`${c.confidence} confi\
dence`:"no finding alone",m>=0?`plan ${m+1}`:""].filter(Boolean);l.append(u("label",{title:c.claim},h,u("b",{},c.words),u("span",{class:"quiet"},` ${p.join(", ")}`)))});
let a=u("p",{class:"buttons"},u("button",{type:"button",onclick:()=>i([])},"None")," ",...s.planned.length?[u("button",{type:"button",onclick:()=>i(s.planned)},
"The plan")]:[]);e.append(u("div",{class:"whatif"},u("div",{},l,a),r)),i(s.planned.slice(0,1))}function dn(s,e){if(!e.size)return[Ce(`The step takes ${k(s.step_ns)}\
 without a profiler. Tick a fix.`),Oe(s)];let t=an(s,e);if(!t)return[Ce("This combination was not replayed for this page."),u("p",{class:"quiet"},"Fixes overlap\
, so their gains do not multiply. This command replays it:"),u("pre",{},ln(s,e)),Oe(s)];let{low:n,expected:r,high:o}=t.step_ns,{gain:i}=t,l=t.is_vague?`at most ${k(
o)}, at least ${N(i.low)}`:`${k(r)}, ${N(i.expected)}`;return[Ce(`${k(s.step_ns)} → ${l}`),u("p",{class:"quiet"},`The 80 % range of the step is ${k(n)} to ${k(
o)}, of the gain ${N(i.low)} to ${N(i.high)}. `+(i.low<1?"It may gain nothing.":"Replayed on this trace's graph, without a profiler.")),Oe(s,t)]}var Ce=s=>u("p",
{class:"strong"},s);function Oe(s,e){let t=Math.max(s.step_ns,e?.step_ns.high??0),n=(dt-D-on)/t,r=M("svg",{viewBox:`0 0 ${dt} ${2*q+2*Pe}`,class:"chart","aria-h\
idden":"true"}),o=(i,l,a,c)=>{let d=i*(q+Pe)+2;r.append(M("text",{x:D-10,y:d+q/2,class:"end"},l),M("rect",{x:D,y:d,width:a*n,height:q,class:c}))};if(o(0,"now",s.
step_ns,"before"),r.append(M("text",{x:D+s.step_ns*n+8,y:q/2+2},k(s.step_ns))),e){let{low:i,expected:l,high:a}=e.step_ns,c=q+Pe+2+q/2;o(1,"after",e.is_vague?a:l,
"after"),r.append(M("path",{class:"whisker",d:`M${D+i*n} ${c}H${D+a*n}M${D+i*n} ${c-6}v12M${D+a*n} ${c-6}v12`})),r.append(M("text",{x:D+a*n+8,y:c},e.is_vague?`≤\
 ${k(a)}`:k(l)))}return r}var z=(s,e,t)=>({name:s,title:e,draw:t}),ht=[z("whatif","What if",ut),z("steps","Steps",ct),z("tables","Tables",nt),z("roofline","Roofline",at),z("flame","Flame\
 graph",Ve),z("budget","Dispatch budget",qe),z("memory","Memory",Je),z("numbers","How each number was made",Ze)];var mt="warpline-theme",pt=()=>matchMedia("(prefers-color-scheme: dark)"),ft=[];function un(){try{let s=localStorage.getItem(mt);return s==="light"||s==="dark"?
s:null}catch{return null}}var fe=()=>(document.documentElement.dataset.theme??(pt().matches?"dark":"light"))==="dark";function gt(s){ft.push(s)}function bt(){let s=un();
s&&(document.documentElement.dataset.theme=s);let e=u("button",{type:"button",class:"theme"}),t=()=>{let r=fe()?"Light":"Dark";e.textContent=r,e.setAttribute("a\
ria-label",`${r} colours`)},n=()=>{t();for(let r of ft)r()};return e.addEventListener("click",()=>{let r=fe()?"light":"dark";document.documentElement.dataset.theme=
r;try{localStorage.setItem(mt,r)}catch{}n()}),pt().addEventListener("change",n),t(),e}function hn(s){let e=Uint8Array.fromBase64;if(e)return e.call(Uint8Array,s);let t=atob(s),n=new Uint8Array(t.length);for(let r=0;r<t.length;r++)n[r]=t.charCodeAt(
r);return n}async function He(s){let{readable:e,writable:t}=new DecompressionStream("deflate-raw"),n=t.getWriter(),r=e.getReader(),o=()=>{};n.write(s).catch(o),
n.close().catch(o);let i=[],l=0;for(let c=await r.read();!c.done;c=await r.read())i.push(c.value),l+=c.value.length;let a=new Uint8Array(l);for(let c=0,d=0;d<i.
length;c+=i[d++].length)a.set(i[d],c);return a}async function ge(s){let e=Q(s),t=e.textContent??"";return e.remove(),He(hn(t))}function ne(s,e=0){let t=e+4+new DataView(
s.buffer).getUint32(e,!0);return{head:JSON.parse(new TextDecoder().decode(s.subarray(e+4,t))),bytes:s,at:t}}async function yt(s){return JSON.parse(new TextDecoder().
decode(await ge(s)))}function be(s,e,t,n,r){let o=s[e++]??0,i=e+t,l=i+t;if(o<2)n.set(s.subarray(e,i),r);else if(o===2)for(let a=0;a<t;a++)n[r+a]=s[e+a]+s[i+a]*256;else
for(let a=0;a<t;a++)n[r+a]=s[e+a]+s[i+a]*256+s[l+a]*65536;for(let a=3,c=2**24;a<o;a++,c*=256){let d=e+a*t;for(let h=0;h<t;h++)n[r+h]+=s[d+h]*c}return e+o*t}var Ie=s=>s%
2?-(s+1)/2:s/2;var mn=200,pn=1,fn=.25,ye=class s{constructor(e){this.timeline=e}timeline;waiting=0;asked=0;moved(){clearTimeout(this.waiting),this.waiting=setTimeout(()=>{this.
fetch()},mn)}static areMissing(e,t,n,r){let o=n-t;return!e.least_ns||o/r>e.least_ns||o>fn*e.length_ns?!1:!e.detailed||t<e.detailed[0]||n>e.detailed[1]}async fetch(){
let e=this.timeline();if(!e)return;let{time:t,events:n}=e,r=Math.max(0,t.start),o=Math.min(t.length,t.end),i=++this.asked;if(!s.areMissing(n.head,r,o,e.picture.
width))return;let l=pn*(o-r),a=Math.floor(Math.max(0,r-l)),c=Math.ceil(Math.min(t.length,o+l)),d=await fetch(`rows?start=${a}&end=${c}`);if(!d.ok||i!==this.asked)
return;let{head:h,bytes:m,at:p}=ne(await He(new Uint8Array(await d.arrayBuffer())));e.replace(h,m,p)}};var vt=s=>{let e=/^(-?\d+)-(\d+)$/.exec(s??"");return e?[Number(e[1]),Number(e[2])]:void 0};function Ue(s){let e=new URLSearchParams(s.replace(/^#/,"")),t=vt(e.
get("at")),n=vt(e.get("range")),r=e.get("event");return{...t?{at:t}:{},...n?{range:n}:{},...r!==null&&/^\d+$/.test(r)?{event:Number(r)}:{}}}function wt({at:s,event:e,
range:t}){let n=r=>r.map(o=>Math.max(0,Math.round(o))).join("-");return[s?`at=${n(s)}`:"",e!==void 0?`event=${e}`:"",t?`range=${n(t)}`:""].filter(Boolean).join(
"&")}var B=64,gn=64,b=-1,re=["gpu","syncs"],Ne=12,ve=class{head;particulars={launches:[],inputs:[],identities:[],spots:[],inside:[]};start;end;sum;name;argument;link;counts;groups=[];lanes=[];longestOf;constructor(e){
this.renew(e)}renew(e){let t=e.events,n=this.groups.map(l=>l.open);this.head=e,this.start=new Float64Array(t),this.end=new Float64Array(t),this.sum=new Float64Array(
t+1),this.name=e.names.length<65536?new Uint16Array(t):new Uint32Array(t),this.argument=new Uint32Array(t),this.link=new Int32Array(t).fill(b),this.counts=new Uint32Array(
e.names.length),this.longestOf=new Uint32Array(Math.ceil(t/B));let r=0,o=new Map;for(let{kind:l,device:a}of e.tracks)l==="gpu"&&o.set(a,(o.get(a)??0)+1);let i=({
kind:l,device:a})=>l==="python"||re.includes(l)&&(o.get(a)??0)>Ne;this.groups=e.tracks.map((l,a)=>{let c=[],d={track:l,lanes:c,open:n[a]??!i(l)};return l.lanes.
forEach((h,m)=>c.push({group:d,depth:m,first:r,beyond:r+=h,ready:!1})),d}),this.lanes=this.groups.flatMap(l=>l.lanes)}readFirst(e,t){return this.readPictures(e,
t,0,this.head.early_parts)}readRest(e,t){let n=this.head.early_parts,r=this.head.tracks.reduce((o,i)=>Math.max(o,i.part+1),0);({head:this.particulars,at:t}=ne(e,
t)),t=this.readRelations(e,t,0,n),t=this.readPictures(e,t,n,r),this.readRelations(e,t,n,r)}readPictures(e,t,n,r){for(let o=n;o<r;o++)t=this.readPicture(e,t,this.
lanes.filter(i=>i.group.track.part===o));return t}readRelations(e,t,n,r){let{argument:o,link:i}=this;for(let l=n;l<r;l++){let a=this.lanes.filter(m=>m.group.track.
part===l),c=a[0]?.first??0,d=(a[a.length-1]?.beyond??0)-c;t=be(e,t,d,o,c);let h=new Float64Array(d);t=be(e,t,d,h,0);for(let m=0,p=b;m<d;m++)i[c+m]=p+=Ie(h[m])}return t}readPicture(e,t,n){
let{start:r,end:o,sum:i,name:l,counts:a}=this,c=n[0]?.first??0,d=n[n.length-1]?.beyond??0,h=d-c;for(let p of[r,o,l])t=be(e,t,h,p,c);let m=i[c]??0;for(let p of n){
let f=0;for(let g=p.first;g<p.beyond;g++){let w=o[g];r[g]=f+=Ie(r[g]),o[g]=f+=w,i[g+1]=m+=w,a[l[g]]++}p.ready=!0}for(let p=Math.floor(c/B);p*B<d;p++){let f=Math.
max(p*B,c);for(let g=f+1,w=Math.min(d,(p+1)*B);g<w;g++)this.duration(g)>this.duration(f)&&(f=g);this.longestOf[p]=f}return t}duration(e){return this.end[e]-this.
start[e]}text(e){return this.head.names[this.name[e]].text}label(e){let t=this.head.names[this.name[e]];return t.short||t.text}after(e,t){let n=e.first,r=e.beyond;
for(;n<r;){let o=n+r>>>1;this.end[o]>t?r=o:n=o+1}return n}leap(e,t,n){let{start:r}=this,o=1,i=e;for(;i+o<t&&r[i+o]<n;)i+=o,o*=2;let l=Math.min(t,i+o);for(i++;i<
l;){let a=i+l>>>1;r[a]<n?i=a+1:l=a}return i}longest(e,t){let n=e,r=this.duration(e),o=c=>{let d=this.duration(c);d>r&&(r=d,n=c)},i=Math.ceil(e/B),l=Math.floor(t/
B);if(l<=i){for(let c=e+1;c<t;c++)o(c);return n}for(let c=e+1;c<i*B;c++)o(c);let a=Math.max(1,Math.floor((l-i)/gn));for(let c=i;c<l;c+=a)o(this.longestOf[c]);for(let c=l*
B;c<t;c++)o(c);return n}find(e,t,n){for(let r of this.lanes)if(r.group.track.kind===e){for(let o=this.after(r,n);o<r.beyond&&this.start[o]<=n;o++)if(this.start[o]===
n&&this.name[o]===t)return o}return b}laneOf(e){let t=0,n=this.lanes.length-1;for(;t<n;){let r=t+n+1>>1;this.lanes[r].first<=e?t=r:n=r-1}for(;this.lanes[t].beyond<=
e;)t++;return this.lanes[t]}kind(e){return this.laneOf(e).group.track.kind}};var E=160,K=22,se=17,U=17,xt=3,F=22,S=K+se,bn=14,yn=.5,kt=["gpu","idle","syncs"],vn=["api","ops","ranges","python"],wn={python:"Python"},le=class{rows=[];pinned;height;rowOf=new Map;y=0;constructor(e,t){
let{groups:n,head:r}=e,o=new Map;for(let l of n)o.set(l.track.thread,[...o.get(l.track.thread)??[],l]);for(let l of xn(n.map(a=>a.track.device)))this.addDevice(
l,n.filter(a=>a.track.device===l));let i=this.y;for(let l of kn(n)){this.add(F,{title:r.threads[l]??"thread"});for(let a of vn)for(let c of o.get(l)??[])c.track.
kind===a&&this.addGroup(c,wn[a]??c.track.label)}this.height=this.y,this.pinned=i>t*yn?0:i}of(e){return this.rowOf.get(e)}add(e,t){let n={y:this.y,height:e,...t};
this.rows.push(n),n.lane&&this.rowOf.set(n.lane,n),this.y+=e}addDevice(e,t){let n=t.filter(l=>re.includes(l.track.kind)),r=n.filter(l=>l.track.kind==="gpu").length>
Ne,o=r&&!n.some(l=>l.open);this.add(F,{title:`GPU ${e}`,...r?{toggles:n}:{}});for(let l of o?kt.filter(a=>!re.includes(a)):kt)for(let a of t)a.track.kind===l&&this.
addGroup(a,a.track.label);if(!o)return;let i=G(n.filter(l=>l.track.kind==="gpu").length,"stream");for(let{lanes:l}of n)for(let a of l)this.add(xt,{lane:a,thin:!0,
...i?{label:i,toggles:n}:{}}),i=void 0;this.y+=5}addGroup(e,t){let n=e.lanes,r=this.y;if(!n.length)return;let o=n.length>1||e.track.kind==="python";for(let i of e.
open?n:n.slice(0,bn)){let l=i.depth===0;this.add(e.open?U:xt,{lane:i,...l?{label:t}:{},...l&&o?{toggles:[e]}:{},...e.open?{}:{thin:!0}})}this.y=Math.max(this.y,
r+U)+5}},xn=s=>[...new Set(s.filter(e=>e!==null))].sort((e,t)=>e-t);function kn(s){let e=new Map;for(let{track:n}of s){if(n.thread===null)continue;let r=e.get(n.
thread)??{};r[n.kind]=(r[n.kind]??0)+n.lanes.reduce((o,i)=>o+i,0),e.set(n.thread,r)}return[...e].map(([n,{api:r=0,ops:o=0,ranges:i=0,python:l=0}])=>({thread:n,main:+(r>
0&&i+l>0),api:r,ops:o})).sort((n,r)=>r.main-n.main||r.api-n.api||r.ops-n.ops||n.thread-r.thread).map(({thread:n})=>n)}var Mn={matmul:[.56,.115,257],attention:[.5,.12,287],norm:[.66,.09,215],kernel:[.74,.06,240],copy:[.6,.1,308],memset:[.8,.02,250],comm:[.6,.15,350],graph:[.62,.08,
180],launch:[.8,.045,165],wait:[.66,.13,38],api_copy:[.74,.075,308],allocate:[.62,.09,20],api:[.83,.015,200],op:[.81,.05,255],range:[.88,.04,130],python:[.88,.022,
85],module:[.83,.055,90],sync:[.72,.1,45],idle:[.84,.01,250]},En={dispatch:"e69f00",sync:"d55e00",transfer:"56b4e9",input:"009e73",memory:"f0e442",comm:"cc79a7",
cold_start:"8c5a3c",launch_latency:"9aa0a6",dependency:"0072b2",profiler:"5f6368",unknown:"c9cdd2"},Tn=new Set(["op","range","python","module"]),An=new Set(["la\
unch","api","memset"]),$n=new Set(["matmul","attention"]),Ln=new Set(["launch","wait","api_copy","allocate","api","op","range","python","module"]);function Sn([
s,e,t]){let n=e*Math.cos(t*Math.PI/180),r=e*Math.sin(t*Math.PI/180),o=(s+.3963377774*n+.2158037573*r)**3,i=(s-.1055613458*n-.0638541728*r)**3,l=(s-.0894841775*n-
1.291485548*r)**3,a=c=>Math.round(255*Math.min(1,Math.max(0,c<=.0031308?12.92*c:1.055*c**(1/2.4)-.055)));return[a(4.0767416621*o-3.3077115913*i+.2309699292*l),a(
-1.2684380046*o+2.6097574011*i-.3413193965*l),a(-.0041960863*o-.7034186147*i+1.707614701*l)]}var xe=s=>{let e=s.replace("#","");return[0,2,4].map(t=>parseInt(e.
slice(t,t+2),16))},Mt=s=>`rgb(${s.join(" ")})`,V=s=>(255<<24|s[2]<<16|s[1]<<8|s[0])>>>0,Ge=(s,e,t)=>s.map((n,r)=>Math.round(n*t+e[r]*(1-t))),De=s=>xe(En[s]??"c9\
cdd2");function we(s,e,t=.5){let[n,r,o]=Mn[s],i=n;return e&&(i=Tn.has(s)?1.22-i:An.has(s)?i-.3:$n.has(s)?i+.05:i-.04),Sn([i+(t-.5)*.055,r,o+(t*7%1-.5)*(Ln.has(s)?
46:16)])}function _n(s){let e=2166136261;for(let t=0;t<s.length;t++)e=Math.imul(e^s.charCodeAt(t),16777619);return(e>>>8)%997/997}var Rn=s=>.299*s[0]+.587*s[1]+
.114*s[2]>135;function Et(s,e,t){let n=new Uint32Array(s.length),r=new Uint32Array(s.length),o=new Uint8Array(s.length);return s.forEach((i,l)=>{let a=i.cause!==
null?De(i.cause):null,c=a??we(i.kind,e,_n(i.short||i.text));n[l]=V(c),r[l]=V(Ge(c,t,.24)),o[l]=Rn(a??we(i.kind,e))?1:0}),{full:n,faded:r,darkInk:o}}var j='Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';function Tt(){let s=getComputedStyle(document.documentElement),e=r=>s.getPropertyValue(
`--${r}`).trim(),t={paper:e("paper"),ink:e("ink"),dim:e("dim"),rule:e("rule"),grid:e("grid"),band:e("band"),accent:e("accent")},n=r=>V(xe(r));return{dark:fe(),paper:xe(
t.paper),css:t,pixels:{paper:n(t.paper),grid:n(t.grid),rule:n(t.rule)}}}var ce=class{constructor(e,t){this.events=e;this.width=t;this.line=new Uint32Array(t)}events;width;line;draw(e,t,n,r,o,i){let{events:l,line:a,width:c}=this,{start:d,
end:h,sum:m,name:p}=l,{beyond:f}=e,g=t+c/n,w=e.group.track.kind==="idle",T=l.after(e,t),$=!1;for(;T<f&&d[T]<g;){$=!0;let x=(d[T]-t)*n,v=(h[T]-t)*n;if(v-x>=1.5){
let R=Math.max(0,x),I=Math.min(c,v-x>4?v-1:v),X=r[p[T]],J=Math.ceil(R),Z=Math.floor(I);Z>J&&a.fill(X,J,Z),J>R&&J<=c&&this.blend(J-1,X,J-R),I>Z&&Z<c&&this.blend(
Z,X,I-Z),i&&i(T,R,I),T++;continue}let y=Math.max(0,Math.floor(x)),A=t+(y+1)/n,L=l.leap(T,f,A);L-1>T&&(h[L-1]-d[L-1])*n>=1.5&&L--;let C=Math.max(0,h[L-1]-A)*n,O=(m[L]-
m[T])*n-C;if(y<c){let R=o!==null&&o.before[L]>o.before[T],I=L-T===1?T:R?Pn(o,T,L):l.longest(T,L),X=O>=1||R?1:w?Math.max(.08,O):Math.max(.25,Math.sqrt(Math.max(0,
O)));this.blend(y,r[p[I]],X),C>.05&&y+1<c&&this.blend(y+1,r[p[L-1]],Math.min(1,C))}T=L}return $}blend(e,t,n){let r=this.line[e],o=1-n,i=(t>>>16&255)*n+(r>>>16&255)*
o,l=(t>>>8&255)*n+(r>>>8&255)*o,a=(t&255)*n+(r&255)*o;this.line[e]=(255<<24|i<<16|l<<8|a)>>>0}};function Pn(s,e,t){let n=s.before[e],r=e,o=t-1;for(;r<o;){let i=r+
o>>>1;s.before[i+1]>n?o=i:r=i+1}return r}var Cn=26,On=110,ke=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d",{alpha:!1}),this.layout=new le(t,0),this.raster=
new ce(t,1),this.image=new ImageData(1,1),this.pixels=this.ground=new Uint32Array(1)}canvas;events;time;layout;scroll=0;covered=0;width=64;height=64;took={raster:0,
draw:0};context;size={width:0,height:0,ratio:1};ratio=1;raster;image;pixels;ground;textWidths=new Map;has({width:e,height:t,ratio:n}){return this.size.width===e&&
this.size.height===t&&this.size.ratio===n}resize(e){let{width:t,height:n,ratio:r}=this.size=e;this.width=Math.max(E+64,Math.floor(t)),this.height=Math.max(S+32,
Math.floor(n)),this.ratio=r,this.canvas.width=this.width*r,this.canvas.height=this.height*r;let o=Math.floor((this.width-E)*r),i=Math.floor((this.height-S)*r);this.
image=new ImageData(o,i),this.pixels=new Uint32Array(this.image.data.buffer),this.raster=new ce(this.events,o),this.ground=new Uint32Array(o),this.place()}place(){
this.layout=new le(this.events,this.height-S)}x(e){return E+(e-this.time.start)/this.time.span*(this.width-E)}timeAt(e){return this.time.start+(e-E)/(this.width-
E)*this.time.span}screenY(e){return S+e.y-(e.y<this.layout.pinned?0:this.scroll)}box(e){let t=this.layout.of(this.events.laneOf(e));if(!t)return null;let n=this.
x(this.events.start[e]);return{x:n,right:Math.max(this.x(this.events.end[e]),n+2),y:this.screenY(t),height:t.height-(t.thin?0:1),row:t}}rowAt(e,t=!1){let{rows:n,
pinned:r}=this.layout,o=e<S+r;return n.find(i=>i.y<r===o&&e>=this.screenY(i)&&e<this.screenY(i)+Math.max(i.height,t&&i.toggles?U:0))}eventAt(e,t){let n=e<E||t<S?
void 0:this.rowAt(t),r=n?.lane;if(!r?.ready||t>=this.screenY(n)+n.height)return-1;let{events:o}=this,i=this.time.span/(this.width-E),l=this.timeAt(e),a=o.after(
r,l-i);if(a>=r.beyond||o.start[a]>l+i*1.5)return-1;let c=o.leap(a,r.beyond,l+i);return c-a<=1||o.start[a]<=l&&o.end[a]>l&&o.duration(a)>i*2?a:o.longest(a,c)}draw(e,t,n,r){
let o=performance.now(),{layout:i,context:l,ratio:a}=this;this.scroll=Math.max(0,Math.min(this.scroll,i.height-(this.height-this.covered-S)+8));let c=Hn(this.time.
span,(this.width-E)/On),d=[];this.background(e,c);let{pinned:h}=i;for(let m of i.rows)m.y>=h&&this.lane(m,h,n,r,d);for(let m of i.rows)m.y<h&&this.lane(m,0,n,r,
d);l.setTransform(a,0,0,a,0,0),l.putImageData(this.image,Math.round(E*a),Math.round(S*a)),this.took.raster=performance.now()-o,this.labels(d,e,t,r),this.ruler(e,
c),this.names(e),this.took.draw=performance.now()-o}background(e,t){let{ground:n,pixels:r,time:o}=this,i=n.length,l=this.image.height,a=i/o.span;n.fill(e.pixels.
paper);for(let c=Math.ceil(o.start/t)*t;c<o.end;c+=t)n[Math.min(i-1,Math.floor((c-o.start)*a))]=e.pixels.grid;for(let c of this.events.head.steps)for(let d of[c.
start_ns,c.end_ns])d>o.start&&d<o.end&&(n[Math.floor((d-o.start)*a)]=e.pixels.rule);r.set(n,0);for(let c=1;c<l;c*=2)r.copyWithin(c*i,0,Math.min(c,l-c)*i)}lane(e,t,n,r,o){
if(!e.lane?.ready)return;let{ratio:i,raster:l,pixels:a}=this,c=l.width,d=this.image.height,h=this.screenY(e)-S;if(h+e.height<=t||h>=this.height-S)return;l.line.
set(this.ground);let m=Cn*i,p=e.thin?null:(w,T,$)=>{$-T>m&&o.push({i:w,left:T/i,right:$/i,y:h,floor:t})};if(!l.draw(e.lane,this.time.start,c/this.time.span,n,r,
p))return;let f=Math.max(Math.round(t*i),Math.round(h*i)),g=Math.min(d,Math.round((h+e.height-(e.thin?0:1))*i));for(let w=f;w<g;w++)a.set(l.line,w*c)}fitted(e,t){
let n=this.textWidths.get(e);if(n===void 0&&this.textWidths.set(e,n=this.context.measureText(e).width),n<=t)return e;let r=Math.floor(e.length*(t-8)/n);return r<
2?"":`${e.slice(0,r)}…`}labels(e,t,n,r){let{context:o,events:i}=this;o.font=`11px ${j}`,o.textBaseline="middle",o.textAlign="left";let l=a=>r&&!r.names[a]?t.css.
dim:n.darkInk[a]?"#14181d":"#fff";for(let a of["#14181d","#fff",t.css.dim]){o.fillStyle=a;for(let{i:c,left:d,right:h,y:m,floor:p}of e){if(l(i.name[c])!==a||m+4<
p)continue;let f=this.fitted(i.label(c),h-d-8);f&&o.fillText(f,E+d+4,S+m+U/2)}}}ruler(e,t){let{context:n,time:r,width:o}=this,{steps:i}=this.events.head;n.fillStyle=
e.css.paper,n.fillRect(0,0,o,S),n.fillStyle=e.css.dim;let[l,a]=r.end>=1e9?["s",1e9]:r.end>=1e6?["ms",1e6]:["µs",1e3],c=Math.max(0,-Math.floor(Math.log10(t/a)+1e-9));
for(let d=Math.ceil(r.start/t)*t;d<r.end;d+=t){let h=this.x(d);n.fillRect(Math.floor(h),K-6,1,6),n.fillText(`${(d/a).toFixed(c)} ${l}`,h+4,K/2+1)}n.save(),n.beginPath(),
n.rect(E,K,o-E,se),n.clip(),i.forEach((d,h)=>{let m=this.x(d.start_ns),p=this.x(d.end_ns);if(p<E||m>o)return;n.fillStyle=e.css.band,n.fillRect(m,K,Math.max(1,p-
m-1),se-3);let f=Math.max(m,E),g=this.fitted(`step ${h}  ${k(d.end_ns-d.start_ns)}`,Math.min(p,o)-f-10);n.fillStyle=e.css.dim,g&&n.fillText(g,f+5,K+se/2-1)}),n.
restore()}names(e){let{context:t,layout:n,height:r}=this,{rows:o,pinned:i}=n;t.fillStyle=e.css.paper,t.fillRect(0,S,E,r),t.save(),t.beginPath(),t.rect(0,S+i,E,r),
t.clip();for(let l of o)l.y>=i&&this.rowName(l,e);t.restore();for(let l of o)l.y<i&&this.rowName(l,e);t.fillStyle=e.css.rule,t.fillRect(E-1,0,1,r),t.fillRect(0,
S-1,this.width,1),i&&t.fillRect(0,S+i-1,this.width,1),t.fillStyle=e.css.dim,t.font=`11px ${j}`,this.events.head.steps.length&&t.fillText("steps",10,K+se/2-1)}rowName(e,t){
let{context:n}=this,r=this.screenY(e);r>this.height||r+F<S||(e.title!==void 0?(n.fillStyle=t.css.ink,n.font=`600 11px ${j}`,e.toggles&&this.arrow(e,r+F/2+2),n.fillText(
this.fitted(e.title,E-18),e.toggles?22:10,r+F/2+2)):e.label&&(n.fillStyle=t.css.dim,n.font=`11px ${j}`,n.fillText(this.fitted(e.label,E-30),22,r+U/2),e.toggles&&
this.arrow(e,r+U/2)))}arrow(e,t){this.context.fillText(e.toggles?.some(n=>n.open)?"▾":"▸",10,t)}};function Hn(s,e){let t=s/Math.max(2,e),n=10**Math.floor(Math.
log10(t)),r=t/n;return n*(r>5?10:r>2?5:r>1?2:1)}var In=6,Me=class{constructor(e,t,n,r){this.events=e;this.relations=t;this.go=n;this.search=r}events;relations;go;search;list=u("dl");element(e){this.list.replaceChildren();
let{events:t}=this;switch(this.say("duration",k(t.duration(e))),this.say("begins",Un(t.start[e])),t.kind(e)){case"gpu":this.operation(e);break;case"idle":this.gap(
e);break;case"api":this.call(e);break;case"ops":this.op(e);break;default:break}let n=t.head.names[t.name[e]];return n.short&&n.cause===null&&this.say("full name",
u("code",{},n.text)),u("div",{class:"body"},u("div",{class:"facts"},this.list),u("div",{class:"chain"},...this.inside(e),...this.within(e)))}same(e){let{events:t}=this,
n=t.label(e);return u("p",{class:"quiet"},`${_(t.counts[t.name[e]])} of this name · `,u("button",{class:"go",onclick:()=>this.search(n)},"search"))}say(e,...t){
let n=t.filter(r=>r!=null&&r!=="");n.length&&this.list.append(u("dt",{},e),u("dd",{},...n))}link(e,t=""){return u("button",{class:"go",title:this.events.text(e),
onclick:()=>this.go(e)},this.events.label(e)+t)}operation(e){let{events:t,relations:n}=this,{head:r,particulars:o,start:i}=t,l=o.launches[t.argument[e]-1],a=n.callOf(
e),c=r.names[t.name[e]].identity;l?.floor_ns!=null&&this.say("roofline",`${H(l.floor_ns,t.duration(e))} of it reached: at least ${k(l.floor_ns)}, bound by ${l.bound??
"?"}`);for(let[h,m]of o.identities[c??b]?.facts??[])this.say(h,m);l?.grid&&l.block&&(this.say("grid × block",`${l.grid.join(", ")} × ${l.block.join(", ")}`),this.
say("threads",_([...l.grid,...l.block].reduce((h,m)=>h*m,1)))),l?.registers!=null&&this.say("registers, shared",`${l.registers} a thread, ${P(l.shared_bytes??0)}\
 a block`),l?.moved_bytes!=null&&this.say("moved",`${P(l.moved_bytes)}${t.duration(e)?`, ${P(l.moved_bytes/t.duration(e)*1e9)}/s`:""}`),l?.source&&this.say("mem\
ory",`${l.source} → ${l.target??"?"}`),a!==b&&(this.say("launched by",this.link(a,`  ${k(t.duration(a))}`)),this.say("launch→start",k(i[e]-i[a])));let d=n.opOf(
e);d!==b&&(this.say("op",this.link(d)),this.inputs(d))}inside(e){let{events:t}=this,n=t.kind(e)==="gpu"?t.particulars.launches[t.argument[e]-1]?.inside:null,r=t.
particulars.inside[n??b];if(!r)return[];let o=r.facts.flatMap(([a,c])=>[u("dt",{},a),u("dd",{},c)]),i=document.getElementById(`inside-${n}`),l=u("button",{type:"\
button",class:"go",onclick:()=>{i.setAttribute("open",""),i.scrollIntoView({block:"start"})}},"all measured values");return[u("h3",{},"inside, by Nsight Compute"),
u("p",{},u("b",{},r.reason)),u("dl",{},...o),...i?[l]:[]]}inputs(e){let t=this.events.particulars.inputs[this.events.argument[e]-1];t&&(t.shapes&&this.say("shap\
es",u("code",{},t.shapes)),t.dtypes&&this.say("types",u("code",{},t.dtypes)),t.module&&this.say("module",t.module))}call(e){let{events:t,relations:n}=this,r=n.launched(
e),o=t.link[e];r.length&&(this.say("launches",this.link(r[0]),r.length>1?` and ${_(r.length-1)} more`:null),this.say("launch→start",k(t.start[r[0]]-t.start[e]))),
o!==b&&(this.say("op",this.link(o)),this.inputs(o))}op(e){let{events:t,relations:n}=this,r=t.link[e];this.inputs(e);let o=n.workOf(e);if(o.length){let i=o.reduce(
(l,a)=>l+t.duration(a),0);this.say("on the GPU",this.link(o[0]),o.length>1?` and ${_(o.length-1)} more, ${k(i)} in all`:null)}if(r!==b)this.say("backward of",this.
link(r));else{let i=n.backwardOf(e);i.length&&this.say("differentiated by",this.link(i[0]))}}gap(e){let{events:t}=this,n=t.laneOf(e),{start:r,end:o,link:i}=t,l=e,
a=e;for(;l>n.first&&i[l-1]===i[e]&&r[l]===o[l-1];)l--;for(;a+1<n.beyond&&i[a+1]===i[e]&&o[a]===r[a+1];)a++;let c=[];for(let d=l;d<=a;d++)c.push(`${t.label(d)} ${k(
t.duration(d))}`);this.say("whole gap",`${k(o[a]-r[l])}: ${c.join(", ")}`),i[e]!==b&&this.say("ended by",this.link(i[e]))}within(e){let{events:t,relations:n}=this,
r=t.laneOf(e),{kind:o}=r.group.track,i=n.callOf(e),l=r.group.track.thread!==null?e:i!==b?i:o==="gpu"?n.opOf(e):b;if(l===b)return[];let{thread:a}=t.laneOf(l).group.
track,c=t.start[l],d=n.around(n.group("python",a),c,o==="python"?r.depth:1/0),h=o==="python"?[]:n.around(n.group("ranges",a),c,o==="ranges"?r.depth:1/0),m=o==="\
python"||o==="ranges"?[]:n.around(n.group("ops",a),c,o==="ops"?r.depth:1/0),p=[...h,...d.slice(-In),...m].filter(f=>f!==e);return p.length?[u("h3",{},"within"),
...p.map(f=>this.link(f,`  ${k(t.duration(f))}`))]:[]}},Un=s=>`${(s/1e6).toFixed(3)} ms`;var Nn=[[["W","S"],"zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],[["A","D"],"pan (also drag, Shift and wheel)"],[["←",
"→"],"previous, next event of the row; without a selection, pan"],[["↑","↓"],"out to the caller, in to the callee; without a selection, scroll"],[["Enter"],
"select an event in the middle of the view"],[["F","0"],"fit the selection, the whole trace"],[["L"],"follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
[["G"],"next, largest gap of the cause that is searched for"],[["R"],"select the visible range (also Shift and drag, or drag on the ruler)"],[["P","T"],"fold or\
 unfold Python; the streams of a GPU with many"],[["/","N","Shift+N"],"search, next, previous match"],[["Esc"],"clear"]];function At(s){let e=u("input",{type:"s\
earch",placeholder:"Search names   /",spellcheck:"false",autocomplete:"off","aria-label":"Search names"}),t=u("button",{type:"button","aria-label":"Previous mat\
ch",disabled:!0},"↑"),n=u("button",{type:"button","aria-label":"Next match",disabled:!0},"↓"),r=u("output",{"aria-live":"polite"}),o=u("output"),i=u("button",
{type:"button",title:"Whole trace (0)"},"Whole trace"),l=u("button",{type:"button","aria-label":"Keys",title:"Keys (?)"},"?"),a=u("ul",{class:"legend","aria-lab\
el":"Causes of idle time"}),c=u("canvas",{class:"map",role:"img","aria-label":"The whole trace; drag to move the view"}),d=u("canvas",{class:"view",tabindex:0,role:"\
application","aria-label":"Timeline. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys."}),
h=u("canvas",{class:"over","aria-hidden":"true"}),m=u("div",{class:"tip",role:"tooltip",hidden:!0}),p=u("div",{class:"stage"},d,h,m),f=u("aside",{class:"event",
"aria-label":"Selection","aria-live":"polite",hidden:!0}),g=u("dialog",{"aria-label":"Keys"},u("h2",{},"Keys"),u("dl",{},...Nn.flatMap(([T,$])=>[u("dt",{},...T.
flatMap(x=>[u("kbd",{},x)," "])),u("dd",{},$)])),u("form",{method:"dialog"},u("button",{},"Close"))),w=u("div",{class:"tools",role:"toolbar","aria-label":"Timel\
ine tools"},e,t,n,r,u("span",{class:"room"}),o,i,l);return s.replaceChildren(u("h2",{},"Timeline"),a,w,c,p,f,g),{find:e,previous:t,next:n,found:r,span:o,whole:i,
help:l,legend:a,map:c,stage:p,view:d,over:h,tip:m,panel:f,keys:g}}var Gn=4,$t=240,Dn=60,Bn={w:[.2,-.2],s:[-.25,.25],a:[-.2,-.2],d:[.2,.2]};function Lt(s){Wn(s),Kn(s),Xn(s);let{find:e,next:t,previous:n,whole:r,help:o,keys:i}=s.
parts;e.addEventListener("input",()=>s.seek(e.value)),t.addEventListener("click",()=>s.next(1)),n.addEventListener("click",()=>s.next(-1)),r.addEventListener("c\
lick",()=>s.time.glide(0,s.time.length)),o.addEventListener("click",()=>i.showModal())}function Fn(s,e){let{events:t,picture:n,time:r,relations:o}=s,{tip:i,view:l}=s.
parts,a=n.eventAt(e.offsetX,e.offsetY);if(a!==s.hovered&&(s.hovered=a,s.drawOver()),l.style.cursor=e.offsetX<E?"default":e.offsetY<S?"col-resize":a!==b?"pointer":
"grab",i.hidden=a===b,a===b)return;let c=r.span/(n.width-E),d=t.leap(a,t.laneOf(a).beyond,t.start[a]+c)-a-1,h=o.opOf(a);i.replaceChildren(u("b",{},t.label(a)),u(
"span",{},k(t.duration(a)))),t.kind(a)==="gpu"&&h!==b&&i.append(u("span",{},t.text(h))),t.kind(a)==="idle"&&t.link[a]!==b&&i.append(u("span",{},`before ${t.label(
t.link[a])}`)),d>0&&t.duration(a)<c*2&&i.append(u("em",{},`${_(d+1)} events in this column`));let{offsetWidth:m,offsetHeight:p}=i,f=e.offsetY+18;i.style.transform=
`translate(${Math.min(e.offsetX+14,n.width-m-6)}px, ${f+p>n.height?e.offsetY-p-10:f}px)`}function Wn(s){let{picture:e,time:t,parts:{view:n,tip:r}}=s,o=new Map,i=null;
n.addEventListener("pointerdown",a=>{n.setPointerCapture(a.pointerId),o.set(a.pointerId,a),t.stop();let c=a.offsetX>=E&&(a.shiftKey||a.offsetY<S);i={x:a.offsetX,
y:a.offsetY,start:t.start,end:t.end,scroll:e.scroll,selects:c,moved:!1}}),n.addEventListener("pointermove",a=>{let c=o.get(a.pointerId);if(!c||!i){Fn(s,a);return}
if(o.set(a.pointerId,a),o.size===2){let p=[...o.values()].find(w=>w.pointerId!==a.pointerId),f=Math.abs(c.offsetX-p.offsetX),g=Math.abs(a.offsetX-p.offsetX);f>8&&
g>8&&t.zoom(f/g,e.timeAt((a.offsetX+p.offsetX)/2)),i.moved=!0;return}let d=a.offsetX-i.x,h=a.offsetY-i.y;if(!i.moved&&Math.hypot(d,h)<Gn)return;if(i.moved=!0,r.
hidden=!0,i.selects){s.selectRange([e.timeAt(Math.max(E,i.x)),e.timeAt(Math.max(E,a.offsetX))]);return}n.style.cursor="grabbing";let m=-d/(e.width-E)*(i.end-i.start);
e.scroll=i.scroll-h,t.move(i.start+m,i.end+m)});let l=a=>{o.delete(a.pointerId),i&&!i.moved&&a.type==="pointerup"&&zn(s,a),o.size||(i=null)};n.addEventListener(
"pointerup",l),n.addEventListener("pointercancel",l),n.addEventListener("pointerleave",()=>{r.hidden=!0,s.hovered=b,s.drawOver()}),n.addEventListener("dblclick",
a=>{let c=e.eventAt(a.offsetX,a.offsetY);c!==b&&s.fit(c)})}function zn(s,e){let{picture:t}=s;if(e.offsetX>=E){s.selectRange(null),s.choose(t.eventAt(e.offsetX,e.
offsetY));return}let n=t.rowAt(e.offsetY,!0)?.toggles;n&&s.fold(n)}function Kn(s){let{picture:e,time:t,parts:{view:n,tip:r}}=s;n.addEventListener("wheel",o=>{let i=o.
shiftKey||Math.abs(o.deltaX)>Math.abs(o.deltaY);if(!o.ctrlKey&&!i&&document.activeElement!==n)return;o.preventDefault(),r.hidden=!0,t.stop();let l=o.deltaMode===
WheelEvent.DOM_DELTA_LINE?16:1,a=o.deltaX*l,c=o.deltaY*l;o.offsetX<E?(e.scroll+=c,s.redraw()):i?t.pan((a||c)/(e.width-E)*t.span):t.zoom(Math.exp(Math.max(-$t,Math.
min($t,c))*(o.ctrlKey?.01:.0022)),e.timeAt(o.offsetX))},{passive:!1})}function Xn(s){let{find:e,view:t,keys:n,panel:r}=s.parts;e.addEventListener("keydown",o=>{
o.key==="Enter"&&(s.next(o.shiftKey?-1:1),o.preventDefault()),o.key==="Escape"&&(e.value="",s.seek(""),t.focus()),o.stopPropagation()}),addEventListener("keydow\
n",o=>{if(o.metaKey||o.ctrlKey||o.altKey||n.open)return;let i=o.target;i!==t&&i!==document.body&&!r.contains(i)||i.tagName==="BUTTON"&&(o.key==="Enter"||o.key===
" ")||i===document.body&&o.key.startsWith("Arrow")||Yn(s,o)&&o.preventDefault()})}function Yn(s,e){let{time:t,picture:n,chosen:r,events:o}=s,i=e.key.length===1?
e.key.toLowerCase():e.key,l=Bn[i];if(l)return t.glide(t.start+l[0]*t.span,t.end+l[1]*t.span),!0;switch(i){case"?":return s.parts.keys.showModal(),!0;case"/":return s.
parts.find.focus(),s.parts.find.select(),!0;case"n":return s.next(e.shiftKey?-1:1),!0;case"0":return t.glide(0,t.length),!0;case"f":return r!==b&&s.fit(r),!0;case"\
l":return s.followLink(),!0;case"g":return s.nextGap(),!0;case"p":return s.toggle("python"),!0;case"t":return s.fold(n.layout.rows.flatMap(a=>a.title!==void 0&&
a.toggles||[])),!0;case"r":return s.selectRange([t.start,t.end]),!0;case"Enter":return r===b&&s.choose(qn(s)),!0;case"Escape":return s.selectRange(null),r!==b?s.
choose(b):(s.parts.find.value="",s.seek("")),!0;case"ArrowLeft":case"ArrowRight":{let a=i==="ArrowRight"?1:-1;if(r===b)return t.glide(t.start+.15*a*t.span,t.end+
.15*a*t.span),!0;let c=o.laneOf(r),d=r+a;return d>=c.first&&d<c.beyond&&s.choose(d,!0),!0}case"ArrowUp":case"ArrowDown":{let a=i==="ArrowDown"?1:-1;if(r===b)return n.
scroll+=Dn*a,s.redraw(),!0;let c=s.relations.neighbour(r,a);return c!==b&&s.choose(c,!0),!0}default:return!1}}function qn(s){let{events:e,time:t}=s,n=(t.start+t.
end)/2;for(let r of e.lanes.filter(o=>o.ready).sort((o,i)=>+(i.group.track.kind==="gpu")-+(o.group.track.kind==="gpu"))){let o=e.after(r,n);if(o<r.beyond&&e.start[o]<
t.end)return o}return b}var Vn=4,Be=["matmul","comm","copy","memset"],Ee=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d");let r=o=>{let i=(o.
offsetX-E)/(e.clientWidth-E)*n.length,l=n.span/2;n.stop(),n.move(i-l,i+l)};e.addEventListener("pointerdown",o=>{e.setPointerCapture(o.pointerId),r(o)}),e.addEventListener(
"pointermove",o=>{o.buttons&&r(o)})}canvas;events;time;context;image=null;ratio=1;resize(e){this.ratio=e,this.canvas.width=this.canvas.clientWidth*e,this.canvas.
height=this.canvas.clientHeight*e,this.image=null}forget(){this.image=null}draw(e){let{context:t,canvas:n,ratio:r,time:o}=this;if(n.width<=E*r)return;this.image??=
this.sketch(e),t.putImageData(this.image,0,0),t.setTransform(r,0,0,r,0,0);let i=n.clientWidth-E,l=n.clientHeight,a=E+o.start/o.length*i,c=E+o.end/o.length*i;t.fillStyle=
e.css.dim,t.font=`11px ${j}`,t.textBaseline="middle",t.fillText("whole trace",10,l/2),t.fillStyle=`${e.css.paper}b8`,t.fillRect(E,0,a-E,l),t.fillRect(c,0,E+i-c,
l),t.strokeStyle=e.css.accent,t.lineWidth=1.5,t.strokeRect(a+.75,1.25,Math.max(2,c-a-1.5),l-2.5)}sketch(e){let{events:t,canvas:n,ratio:r}=this,{head:o}=t,{width:i,
height:l}=n,a=Math.round(E*r),c=Math.max(1,i-a),d=this.busiestDevice(),h=Be.map(()=>new Float32Array(c)),m=o.causes.map(()=>new Float32Array(c));for(let x of t.
lanes)x.group.track.device===d&&(x.group.track.kind==="gpu"&&this.spread(x,c,v=>h[Math.max(0,Be.indexOf(o.names[t.name[v]].kind))]),x.group.track.kind==="idle"&&
this.spread(x,c,v=>m[Math.max(0,o.causes.indexOf(o.names[t.name[v]].cause??""))]));let p=new ImageData(i,l),f=new Uint32Array(p.data.buffer),g=Math.round(Vn*r),
w=l-2*g,T=Be.map(x=>V(we(x,e.dark))),$=o.causes.map(x=>V(Ge(De(x),e.paper,.8)));f.fill(e.pixels.paper);for(let x=0;x<c;x++){let v=l-g,y=1,A=(L,C)=>{let O=Math.max(
g,v-L*w);for(let R=Math.round(v)-1;R>=Math.round(O);R--)f[R*i+a+x]=C;v=O};h.forEach((L,C)=>{let O=Math.min(y,L[x]);A(O,T[C]),y-=O}),m.forEach((L,C)=>A(L[x],$[C]))}
return p}busiestDevice(){let e=new Map;for(let{group:t,first:n,beyond:r}of this.events.lanes){let{device:o,kind:i}=t.track;i==="gpu"&&o!==null&&e.set(o,(e.get(o)??
0)+this.events.sum[r]-this.events.sum[n])}return[...e].sort((t,n)=>n[1]-t[1])[0]?.[0]??null}spread(e,t,n){let{start:r,end:o}=this.events,i=t/this.time.length;for(let l=e.
first;l<e.beyond;l++){let a=r[l]*i,c=o[l]*i,d=n(l);for(let h=Math.floor(a);h<c&&h<t;h++)d[h]+=Math.min(c,h+1)-Math.max(a,h)}}};var Te=class{constructor(e,t){this.canvas=e;this.picture=t;this.context=e.getContext("2d")}canvas;picture;context;ratio=1;isEmpty=!0;resize(e){this.ratio=e,this.
canvas.width=this.picture.width*e,this.canvas.height=this.picture.height*e}draw(e,t){let{context:n,picture:r,ratio:o}=this,i=this.isEmpty;if(this.isEmpty=e.chosen<
0&&e.hovered<0&&!e.range,!(i&&this.isEmpty)){n.setTransform(o,0,0,o,0,0),n.clearRect(0,0,r.width,r.height),n.save(),n.beginPath(),n.rect(E,0,r.width-E,r.height),
n.clip(),e.range&&this.range(e.range,t),n.beginPath(),n.rect(E,S,r.width-E,r.height),n.clip();for(let l of e.family)this.frame(l,t.css.dim,1.5);for(let[l,a]of e.
arrows)this.arrow(l,a,t);e.chosen>=0&&this.frame(e.chosen,t.css.accent,2),e.hovered>=0&&e.hovered!==e.chosen&&this.frame(e.hovered,t.css.ink,1),n.restore()}}range([
e,t],n){let{context:r,picture:o}=this,i=o.x(e),l=o.x(t);r.globalAlpha=.12,r.fillStyle=n.css.accent,r.fillRect(i,0,l-i,o.height),r.globalAlpha=1,r.fillRect(i,0,1,
o.height),r.fillRect(l-1,0,1,o.height)}frame(e,t,n){let{context:r,picture:o}=this,i=o.box(e),{pinned:l}=o.layout;if(!i||i.row.y>=l&&i.y<S+l-8)return;let a=Math.
max(E-4,i.x),c=Math.min(o.width+4,i.right);r.strokeStyle=t,r.lineWidth=n,r.strokeRect(a-.5,i.y-.5,Math.max(2,c-a),i.height+1)}arrow(e,t,n){let{context:r,picture:o}=this,
i=o.box(e),l=o.box(t);if(!i||!l)return;let a=i.y>l.y,c=i.x,d=l.x+1,h=a?1:-1,m=Math.max(S+o.layout.pinned-4,a?i.y:i.y+i.height),p=a?l.y+l.height:l.y,f=(p-m)*.55||
20;for(let[g,w]of[[n.css.paper,4],[n.css.accent,1.75]])r.strokeStyle=r.fillStyle=g,r.lineWidth=w,r.beginPath(),r.moveTo(c,m),r.bezierCurveTo(c,m+f,d,p-f,d,p+5*h),
r.stroke();r.beginPath(),r.arc(c,m,3,0,7),r.fill(),r.beginPath(),r.moveTo(d,p),r.lineTo(d-4.5,p+8*h),r.lineTo(d+4.5,p+8*h),r.fill()}};var Fe=24,Ae=class{constructor(e){this.events=e}events;linkedTo(e,t){let n=[],{link:r}=this.events;for(let o of this.events.lanes)if(o.group.track.kind===e)for(let i=o.
first;i<o.beyond;i++)t(r[i])&&n.push(i);return n}launched(e){return this.linkedTo("gpu",t=>t===e)}backwardOf(e){return this.linkedTo("ops",t=>t===e)}callsOf(e){
let{events:t}=this,{start:n,end:r}=t,o=t.laneOf(e).group.track.thread,i=[];for(let l of t.lanes)if(!(l.group.track.kind!=="api"||l.group.track.thread!==o))for(let a=t.
after(l,n[e]);a<l.beyond&&n[a]<r[e];a++)n[a]>=n[e]&&i.push(a);return i}workOf(e){let t=new Set(this.callsOf(e));return this.linkedTo("gpu",n=>n===e||t.has(n))}callOf(e){
let{events:t}=this,n=t.link[e];return t.kind(e)==="gpu"&&n!==b&&t.kind(n)==="api"?n:b}opOf(e){let{events:t}=this,n=t.kind(e);if(n==="ops")return e;if(n==="api")
return t.link[e];if(n!=="gpu")return b;let r=this.callOf(e);return r!==b?t.link[r]:t.link[e]}arrows(e){let{events:t}=this,n=t.link[e];switch(t.kind(e)){case"gpu":case"\
syncs":return n!==b?[[n,e]]:[];case"idle":return n!==b&&t.link[n]!==b?[[t.link[n],n]]:[];case"api":return this.launched(e).slice(0,Fe).map(r=>[e,r]);case"ops":return[
...n!==b?[[n,e]]:this.backwardOf(e).slice(0,Fe).map(o=>[e,o]),...this.workOf(e).slice(0,Fe).map(o=>[t.link[o],o])];default:return[]}}family(e){let{events:t}=this,
n=t.link[e],r=[n];return n!==b&&r.push(t.link[n]),t.kind(e)==="idle"&&n!==b&&t.link[n]!==b&&r.push(t.link[t.link[n]]),r.filter(o=>o!==b)}around(e,t,n=1/0){let r=[];
for(let o of e?.lanes??[]){if(o.depth>=n||!o.ready)continue;let i=this.events.after(o,t);i<o.beyond&&this.events.start[i]<=t&&r.push(i)}return r}group(e,t){return this.
events.groups.find(n=>n.track.kind===e&&n.track.thread===t)}neighbour(e,t){let{events:n}=this,r=n.laneOf(e),o=r.group.lanes[r.depth+t];if(!o)return b;let i=t<0?
n.after(o,n.start[e]):jn(n,o,n.start[e]);return i<o.beyond&&n.start[i]<n.end[e]&&n.end[i]>n.start[e]?i:b}};function jn(s,e,t){let n=e.first,r=e.beyond;for(;n<r;){
let o=n+r>>>1;s.start[o]<t?n=o+1:r=o}return n}var $e=class{constructor(e){this.events=e}events;matches=null;total=0;wanted=null;seek(e){let t=e.trim().toLowerCase();this.choose(t?n=>n.text.toLowerCase().includes(
t)||n.short.toLowerCase().includes(t):null)}seekNames(e){let t=new Set(e);this.choose((n,r)=>t.has(r))}again(){this.choose(this.wanted)}choose(e){if(this.wanted=
e,this.matches=null,this.total=0,!e)return;let{events:t}=this,n=Uint8Array.from(t.head.names,(i,l)=>e(i,l)?1:0),r=new Uint32Array(t.start.length+1),{name:o}=t;for(let i=0,
l=0;i<o.length;i++)r[i+1]=l+=n[o[i]];n.forEach((i,l)=>{i&&(this.total+=t.counts[l])}),this.matches={names:n,before:r}}next(e,t,n){if(!this.matches||!this.total)
return b;let r=this.step(e,t,t!==b?this.events.start[t]:n);return r!==b?r:this.step(e,b,e>0?-1/0:1/0)}step(e,t,n){let{events:r}=this,{start:o,name:i}=r,{names:l}=this.
matches,a=(d,h)=>(o[d]-o[h]||d-h)*e>0,c=b;for(let d of r.lanes){if(!d.ready)continue;let h=d.first,m=d.beyond;for(;h<m;){let p=h+m>>>1;o[p]<n||e<0&&o[p]===n&&p<
t?h=p+1:m=p}for(let p=e>0?h:h-1;p>=d.first&&p<d.beyond&&!(c!==b&&a(p,c));p+=e)if(l[i[p]]&&(t===b||a(p,t))){c=p;break}}return c}};var We=8,Jn=[["On the GPU",["gpu"]],["GPU idle",["idle"]],["API calls",["api"]],["Outermost ops",["ops"]]];function Zn(s,e,t,n){let r=new Map;for(let o of s.lanes){
let{kind:i}=o.group.track;if(!(!o.ready||!n.includes(i)||i==="ops"&&o.depth>0))for(let l=s.after(o,e);l<o.beyond&&s.start[l]<t;l++){let a=Math.min(t,s.end[l])-Math.
max(e,s.start[l]),c=r.get(s.name[l]);c?(c[0]++,c[1]+=a):r.set(s.name[l],[1,a])}}return[...r].map(([o,[i,l]])=>({name:o,count:i,time:l})).sort((o,i)=>i.time-o.time)}
function St(s,e,t,n){let r=u("div",{class:"totals"});for(let[o,i]of Jn){let l=Zn(s,e,t,i),a=l.reduce((h,m)=>h+m.time,0);if(!l.length)continue;let c=l.slice(0,We).
map(h=>{let m=s.head.names[h.name],p=m.short||m.text;return u("tr",{},u("td",{class:"number"},k(h.time)),u("td",{class:"number"},H(h.time,t-e)),u("td",{class:"n\
umber"},_(h.count)),u("td",{},u("button",{class:"go",title:m.text,onclick:()=>n(p)},p)))}),d=l.length>We?u("p",{class:"quiet"},`and ${_(l.length-We)} more names`):
"";r.append(u("div",{},u("h3",{},`${o}: ${k(a)}`),u("table",{},u("thead",{},u("tr",{},...["time","share","count","name"].map((h,m)=>u("th",{scope:"col",class:m<
3?"number":""},h)))),u("tbody",{},...c)),d))}return r}var Le=class{constructor(e,t){this.length=e;this.changed=t;this.end=e}length;changed;start=0;end;gliding=0;get span(){return this.end-this.start}move(e,t){let{length:n}=this,
r=Math.min(n*1.02,Math.max(200,t-e)),o=t-e===r?e:(e+t-r)/2;this.start=Math.max(-.01*n,Math.min(o,(1+.01)*n-r)),this.end=this.start+r,this.changed()}pan(e){this.
move(this.start+e,this.end+e)}zoom(e,t=(this.start+this.end)/2){this.move(t-(t-this.start)*e,t+(this.end-t)*e)}stop(){this.gliding++}glide(e,t){let n=++this.gliding,
r=this.start,o=this.end,i=performance.now();if(matchMedia("(prefers-reduced-motion: reduce)").matches){this.move(e,t);return}let l=()=>{if(n!==this.gliding)return;
let a=Math.min(1,(performance.now()-i)/160),c=1-(1-a)**3;this.move(r+(e-r)*c,o+(t-o)*c),a<1&&requestAnimationFrame(l)};l()}};var Qn=400,er=160,Se=class{constructor(e,t,n,r,o=()=>{}){this.head=e;this.whenDrawn=o;this.events=new ve(e),this.events.readFirst(t,n),this.parts=At(r),this.time=
new Le(Math.max(1,e.length_ns),()=>this.redraw()),this.picture=new ke(this.parts.view,this.events,this.time),this.overlay=new Te(this.parts.over,this.picture),this.
minimap=new Ee(this.parts.map,this.events,this.time),this.relations=new Ae(this.events),this.search_=new $e(this.events),this.details=new Me(this.events,this.relations,
i=>this.choose(i,!0),i=>this.search(i)),this.parts.map.hidden=!e.tracks.some(i=>i.device!==null),this.dress(),this.legend(),this.resize(),this.openAddress(),new ResizeObserver(
()=>{this.picture.has(this.box())||this.resize()}).observe(this.parts.stage),gt(()=>{this.dress(),this.redraw()}),addEventListener("hashchange",()=>this.openAddress()),
Lt(this)}head;whenDrawn;events;time;picture;relations;search_;parts;chosen=b;hovered=b;range=null;overlay;minimap;details;look;paint;colours;pending=!1;writing=0;gaps=null;addRest(e){
this.events.readRest(e,0),this.parts.find.value&&this.seek(this.parts.find.value);let{event:t}=Ue(location.hash);t!==void 0&&this.chosen===b&&this.openAddress(),
this.chosen!==b&&this.choose(this.chosen),this.redraw()}replace(e,t,n){let{events:r,chosen:o}=this,i=o===b?null:{kind:r.kind(o),name:r.name[o],start:r.start[o]};
r.renew(e),r.readRest(t,r.readFirst(t,n)),this.picture.place(),this.minimap.forget(),this.gaps=null,this.search_.again(),this.choose(i?r.find(i.kind,i.name,i.start):
b),this.afterSearch()}goTo(e,t){let n=(t-e)*.05;this.parts.stage.scrollIntoView({block:"nearest"}),this.time.glide(e-n,t+n)}search(e){this.parts.find.value=e,this.
seek(e),this.parts.stage.scrollIntoView({block:"nearest"}),this.next(1)}showFinding(e){let t=this.events.particulars.spots.find(n=>n.finding===e);if(t){if(this.
parts.stage.scrollIntoView({block:"center"}),!t.names.length){this.throughGaps(t.cause);return}this.parts.find.value="",this.search_.seekNames(t.names),this.afterSearch(),
this.next(1)}}showInside(e){let{name:t,start_ns:n}=this.events.particulars.inside[e];t===null||n===null||(this.parts.stage.scrollIntoView({block:"center"}),this.
choose(this.events.find("gpu",t,n),!0))}redraw(){this.pending||(this.pending=!0,requestAnimationFrame(()=>{this.pending=!1,this.draw()}))}draw(){this.picture.draw(
this.look,this.paint,this.colours,this.search_.matches),this.minimap.draw(this.look),this.drawOver(),this.parts.span.textContent=k(this.time.span),this.whenDrawn(),
clearTimeout(this.writing),this.writing=setTimeout(()=>this.writeAddress(),Qn)}drawOver(){let{chosen:e,hovered:t,range:n,relations:r}=this,o=e!==b;this.overlay.
draw({chosen:e,hovered:t,range:n,family:o?r.family(e):[],arrows:o?this.arrows:[]},this.look)}arrows=[];dress(){this.look=Tt(),this.paint=Et(this.head.names,this.
look.dark,this.look.paper),this.minimap.forget(),this.colourMatches()}colourMatches(){let{full:e,faded:t}=this.paint,{matches:n}=this.search_;this.colours=n?e.map(
(r,o)=>n.names[o]?r:t[o]):e}box(){let{width:e,height:t}=this.parts.stage.getBoundingClientRect();return{width:e,height:t,ratio:window.devicePixelRatio||1}}resize(){
let e=this.box(),{ratio:t}=e;this.picture.resize(e),this.limitHeight(),this.overlay.resize(t),this.minimap.resize(t),this.draw()}limitHeight(){this.parts.stage.
style.maxHeight=`${Math.max(er,S+this.picture.layout.height+U)}px`}fold(e){let t=!e.some(n=>n.open);for(let n of e)n.open=t;this.placed()}placed(){this.picture.
place(),this.limitHeight(),this.redraw()}legend(){for(let[e,t]of this.head.names.entries()){if(t.cause===null||!this.events.counts[e])continue;let{cause:n}=t,r=M(
"svg",{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},M("rect",{class:`part ${n.replaceAll("_","-")} cause`,width:1,height:1}));this.parts.legend.append(
u("li",{},u("button",{type:"button",class:"plain",title:"Go through these gaps, the largest first",onclick:()=>this.throughGaps(n)},r,t.short||t.text)))}}throughGaps(e){
let{events:t}=this,n=this.head.names.flatMap((o,i)=>o.cause===e?[i]:[]);this.parts.find.value=`idle: ${e.replaceAll("_"," ")}`,this.search_.seekNames(n);let r=[];
for(let o of t.lanes)if(o.group.track.kind==="idle")for(let i=o.first;i<o.beyond;i++)n.includes(t.name[i])&&r.push(i);r.sort((o,i)=>t.duration(i)-t.duration(o)),
this.gaps={rows:r,at:-1},this.afterSearch(),this.nextGap()}nextGap(){let{gaps:e}=this;e?.rows.length&&(e.at=(e.at+1)%e.rows.length,this.choose(e.rows[e.at],!0),
this.parts.found.textContent=`gap ${_(e.at+1)} of ${_(e.rows.length)}, the largest first: G for the next`)}seek(e){this.gaps=null,this.search_.seek(e),this.afterSearch()}afterSearch(){
let{found:e,next:t,previous:n}=this.parts,{matches:r,total:o}=this.search_;e.textContent=r?G(o,"match","matches"):"",t.disabled=n.disabled=!o,this.colourMatches(),
this.redraw()}next(e){let t=this.search_.next(e,this.chosen,e>0?this.time.start:this.time.end);t!==b&&this.choose(t,!0)}choose(e,t=!1){let{panel:n}=this.parts,{
events:r}=this;if(this.chosen=e,this.arrows=e===b?[]:this.relations.arrows(e),n.hidden=e===b&&!this.range,n.hidden&&(this.picture.covered=0),e!==b){let o=this.head.
names[r.name[e]],i=this.paint.full[r.name[e]],l=M("svg",{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},M("rect",{width:1,height:1,fill:Mt([i&255,i>>>8&
255,i>>>16&255])}));this.show(u("h3",{},l,o.cause!==null?o.text:r.label(e)),this.details.same(e),this.details.element(e)),t&&this.reveal(e)}else this.range&&this.
describeRange();this.redraw()}selectRange(e){this.range=e&&[Math.max(0,Math.min(...e)),Math.min(this.time.length,Math.max(...e))],this.range&&(this.chosen=b,this.
arrows=[]),this.parts.panel.hidden=!this.range&&this.chosen===b,this.range&&this.describeRange(),this.redraw()}describeRange(){let[e,t]=this.range,n=u("button",
{type:"button",onclick:()=>this.time.glide(e,t)},"Zoom here");this.show(u("h3",{},`Selected ${k(t-e)}`),n,St(this.events,e,t,r=>this.search(r)))}show(e,t,n){let r=u(
"button",{type:"button",class:"close","aria-label":"Close",onclick:()=>{this.selectRange(null),this.choose(b),this.parts.view.focus({preventScroll:!0})}},"×");
this.parts.panel.replaceChildren(u("div",{class:"title"},e,t,r),n)}reveal(e){let{events:t,time:n}=this,r=t.laneOf(e),o=t.duration(e),i=t.start[e];!r.group.open&&
!re.includes(r.group.track.kind)&&this.fold([r.group]);let l=Math.max(o*8,4e4);o>n.span*.9||o/n.span<.004?n.glide(Math.max(0,i-l),Math.min(n.length,i+o+l)):(i<n.
start||i+o>n.end)&&n.glide(i+o/2-n.span/2,i+o/2+n.span/2),this.scrollTo([e,...this.relations.family(e)])}scrollTo(e){let{picture:t}=this,{pinned:n}=t.layout,{view:r,
panel:o}=this.parts;t.covered=Math.max(0,r.getBoundingClientRect().bottom-o.getBoundingClientRect().top);let i=Math.max(2*U,t.height-t.covered-S-n),l=e.map(d=>t.
layout.of(this.events.laneOf(d))).filter(d=>d!==void 0&&d.y>=n).map(d=>d.y);if(!l.length)return;let a=Math.min(...l),c=Math.max(...l)+U;c-a>i&&(a=l[0],c=a+U),a-
t.scroll<n?t.scroll=a-n-F:c-t.scroll>n+i&&(t.scroll=Math.min(a-n-F,c-n-i+6))}toggle(e){this.fold(this.events.groups.filter(t=>t.track.kind===e))}fit(e){let t=this.
events.duration(e)*.15+200;this.time.glide(this.events.start[e]-t,this.events.end[e]+t)}followLink(){let{chosen:e,relations:t,events:n}=this;if(e===b)return;let r=n.
link[e],o=r!==b?r:t.launched(e)[0]??(n.kind(e)==="ops"?t.backwardOf(e)[0]??t.workOf(e)[0]:void 0);o!==void 0&&this.choose(o,!0)}openAddress(){let{at:e,event:t,range:n}=Ue(
location.hash);e&&e[1]>e[0]&&this.time.move(e[0],e[1]),n&&this.selectRange(n),t!==void 0&&t<this.head.events&&this.events.laneOf(t).ready&&this.choose(t),(e||n||
t!==void 0)&&this.parts.stage.scrollIntoView({block:"center"})}writeAddress(){let{time:e,chosen:t,range:n}=this,r=e.start<=0&&e.end>=e.length,o=wt({...r?{}:{at:[
e.start,e.end]},...t!==b?{event:t}:{},...n?{range:n}:{}});if(!(!o&&!/^#(at|event|range)=/.test(location.hash)))try{history.replaceState(null,"",o?`#${o}`:location.
href.split("#")[0])}catch{}}};var Rt={begin:performance.now()},_e=s=>{Rt[s]=performance.now()},Pt=()=>new Promise(s=>requestAnimationFrame(()=>setTimeout(s)));function Ct(){let s=[...document.
querySelectorAll("main section[id]")].flatMap(e=>{let t=e.querySelector("h2")?.firstChild?.textContent??e.getAttribute("aria-label");return t&&e.childElementCount?
[u("a",{href:`#${e.id}`},t)]:[]});Q("contents").replaceChildren(...s)}async function tr(){let s=await ge("data-timeline");_e("inflated");let{head:e,bytes:t,at:n}=ne(
s),r=null,o=new ye(()=>r);return r=new Se(e,t,n,Q("timeline"),()=>o.moved()),_e("drawn"),Ct(),r}function _t(s,e){for(let t of document.querySelectorAll(`[data-${s}\
]`)){let n=e(Number(t.dataset[s]));n&&t.append(u("button",{type:"button",class:"jump",onclick:n},"Show on the timeline"))}}async function nr(s){s.addRest(await ge(
"data-rest")),_t("finding",t=>()=>s.showFinding(t)),_t("inside",t=>s.events.particulars.inside[t]?.start_ns==null?null:()=>s.showInside(t)),await Pt();let e=await yt(
"data-panels");for(let t of ht){let n=e[t.name];if(!n)continue;let r=u("div",{class:"body"});Q("panels").append(u("section",{id:t.name,class:"section"},u("h2",{},
t.title),r)),t.draw(n,r,s)}Ct(),_e("complete")}document.querySelector("header")?.append(bt());var rr=new Promise(s=>document.addEventListener("DOMContentLoaded",
()=>s()));tr().then(async s=>{Object.assign(window,{warpline:{marks:Rt,timeline:s}}),await Pt(),_e("painted"),await rr,await nr(s)});})();
