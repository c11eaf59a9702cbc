"use strict";(()=>{var _t="http://www.w3.org/2000/svg";function Be(o,e,t){for(let[n,r]of Object.entries(e))typeof r=="function"?o.addEventListener(n.replace(/^on/,""),r):r===!0?o.
setAttribute(n,""):r!==void 0&&r!==!1&&o.setAttribute(n,String(r));o.append(...t)}function d(o,e={},...t){let n=document.createElement(o);return Be(n,e,t),n}function k(o,e={},...t){
let n=document.createElementNS(_t,o);return Be(n,e,t),n}function j(o){let e=document.getElementById(o);if(!e)throw new Error(`the page has no #${o}`);return e}var Rt=[[1e9,"s"],[1e6,"ms"],[1e3,"µs"]],Pt=[[1e12,"TB"],[1e9,"GB"],[1e6,"MB"],[1e3,"kB"]],Ct=.9995,We=new Intl.NumberFormat("en",{maximumFractionDigits:0});function ze(o){
let e=Math.abs(o);return e>=99.95?We.format(o):e>=9.995?o.toFixed(1):o.toFixed(2)}function Ke(o,e,t){for(let[n,r]of e)if(Math.abs(o)>=n*Ct)return`${ze(o/n)} ${r}`;
return`${o.toFixed(0)} ${t}`}var M=o=>Ke(o,Rt,"ns"),P=o=>Ke(o,Pt,"B"),H=(o,e)=>e?`${(100*o/e).toFixed(1)} %`:"–",D=o=>`${ze(o)}×`,_=o=>We.format(o),te=(o,e,t=`${e}\
s`)=>`${_(o)} ${o===1?e:t}`;function Ot(o,{launches:e,cpu_ns:t,gpu_ns:n,fewer:r}){let s=e*t,i=e*n,c=e===o.launches&&t===o.cpu_ns&&n===o.gpu_ns;return{dispatch_ns:s,work_ns:i,step_ns:c&&o.step_ns!==
null?o.step_ns:Math.max(s,i),graph_ns:c&&o.graph_ns!==null?o.graph_ns:o.graph_launch_ns+i+e*o.graph_gap_ns,fused_ns:Math.max(s/r,i),bound:s>i?"CPU":"GPU",crossover:t?
i/t:null}}function Xe(o,e){let t=d("div",{role:"status","aria-live":"polite"}),n={launches:o.launches,cpu_ns:o.cpu_ns,gpu_ns:o.gpu_ns,fewer:4},r=(l,u,h,m)=>{let p=w=>String(
Math.round(w/h*100)/100),f=n[u],g=d("input",{type:"number",min:m,step:"any",value:p(f)});return g.addEventListener("input",()=>{let w=Number(g.value);g.setAttribute(
"aria-invalid",String(!(Number.isFinite(w)&&w>=m))),!(!Number.isFinite(w)||w<m)&&(n[u]=g.value===p(f)?f:w*h,a())}),[d("label",{},`${l} `,g),g]},s=[r("Launches p\
er step","launches",1,1),r("CPU time per launch, µs","cpu_ns",1e3,0),r("GPU time per launch, µs","gpu_ns",1e3,0),r("Fusion: times fewer launches","fewer",1,1)],
i=s.map(([,l])=>l.value),c=d("button",{type:"button",onclick:()=>s.forEach(([,l],u)=>{l.value=i[u]??"",l.dispatchEvent(new Event("input"))})},"This trace");function a(){
let l=Ot(o,n),u=(m,p)=>[d("dt",{},m),d("dd",{},p)],h=m=>`${M(m)} (${D(l.step_ns/Math.max(m,1))})`;t.replaceChildren(d("p",{class:"strong"},`Bound by ${l.bound===
"CPU"?"dispatch on the CPU":"the GPU"}: a step takes ${M(l.step_ns)}.`),d("dl",{},...u("to dispatch",M(l.dispatch_ns)),...u("to run",M(l.work_ns)),...l.crossover===
null?[]:u("crossover",`the GPU is the limit below ${_(l.crossover)} launches for the same GPU time`),...u("as one CUDA graph",h(l.graph_ns)),...u(`with ${n.fewer}\
 times fewer launches`,h(l.fused_ns))))}e.append(d("div",{class:"budget"},d("div",{class:"fields"},...s.map(([l])=>l),d("p",{},c)),t)),a()}var ne=18,Ht=7.1,It=.6;function Ut(o,e){let t=new Map;o.parent.forEach((l,u)=>t.set(l,[...t.get(l)??[],u]));let n=l=>o.total_ns[l]??0;for(let l of t.values())l.
sort((u,h)=>n(h)-n(u));let r=[],s=[];for(let l=e;l>=0;l=o.parent[l]??-1)s.unshift(l);s.forEach((l,u)=>r.push({node:l,depth:u,left:0,width:1}));let i=e>=0?[e]:t.
get(-1)??[],c=i.reduce((l,u)=>l+n(u),0)||1,a=(l,u,h)=>{for(let m of l){let p=n(m)/c;m!==e&&r.push({node:m,depth:u,left:h,width:p}),a(t.get(m)??[],u+1,h),h+=p}};
return a(i,Math.max(s.length-1,0),0),r}function Ye(o,e){let t=d("select",{"aria-label":"Flame graph"},...o.flames.map((f,g)=>d("option",{value:g},`${f.name}, ${M(
_e(f))}`))),n=d("input",{type:"search",placeholder:"Highlight","aria-label":"Highlight frames"}),r=d("button",{type:"button"},"Whole graph"),s=d("p",{class:"qui\
et",role:"status"}),i=k("svg",{class:"flame",role:"group","aria-label":"Flame graph. Arrow keys move, Enter zooms, Escape zooms out."});e.append(d("p",{class:"t\
ools"},t," ",n," ",r),i,s,d("p",{class:"quiet"},"Width is time, a caller above what it calls. Each moment of a thread belongs to its innermost frame, op or call\
, so nothing is counted twice; GPU time is the sum of durations, below the stack that launched it. Frames under 0.02 % are left out."));let c=-1,a=-1;function l(){
let f=o.flames[Number(t.value)];if(!f)return;let g=Math.max(i.clientWidth||e.clientWidth||1e3,300),w=n.value.toLowerCase(),T=Ut(f,c).filter(y=>y.width*g>=It);new Set(
T.map(y=>y.node)).has(a)||(a=T[0]?.node??-1);let x=Math.max(0,...T.map(y=>y.depth));i.setAttribute("viewBox",`0 0 ${g} ${(x+1)*ne}`);let v=i.contains(document.activeElement);
i.replaceChildren(...T.map(y=>u(f,y,g,w))),v&&m(),r.disabled=c<0,s.textContent=c<0?`${f.name}: ${M(_e(f))}`:le(f,c)}function u(f,g,w,T){let L=f.frames[f.frame[g.
node]??0]??"",x=g.left*w,v=g.width*w,y=Math.floor((v-6)/Ht),A=Dt(L),$=y<3?"":A.length<=y?A:`${A.slice(0,y-1)}…`,C=T!==""&&L.toLowerCase().includes(T),O=()=>{c=
g.node,a=g.node,l()},R=k("g",{class:`frame ${Gt(L)}${C?" match":T?" faded":""}`,"data-node":g.node,tabindex:g.node===a?0:-1,role:"button","aria-label":le(f,g.node),
onclick:O,onfocus:()=>{a=g.node,s.textContent=le(f,g.node)}},k("title",{},le(f,g.node)),k("rect",{x,y:g.depth*ne,width:Math.max(v-.5,.3),height:ne-1}),...$?[k("\
text",{x:x+3,y:g.depth*ne+ne/2},$)]:[]);return R.addEventListener("keydown",I=>{h(f,g,I,O)}),R}function h(f,g,w,T){let L=Nt(f,g.node,w.key);if(w.key==="Enter"||
w.key===" ")T();else if(w.key==="Escape")c=-1,l();else if(L!==null)L>=0&&i.querySelector(`[data-node="${L}"]`)&&(a=L,l());else return;w.preventDefault()}function m(){
i.querySelector(`[data-node="${a}"]`)?.focus()}let p=()=>{c=-1,l()};t.addEventListener("change",p),r.addEventListener("click",p),n.addEventListener("input",l),new ResizeObserver(
l).observe(e),l()}var _e=o=>o.parent.reduce((e,t,n)=>e+(t<0?o.total_ns[n]??0:0),0);function le(o,e){let t=o.total_ns[e]??0;return`${o.frames[o.frame[e]??0]??""}\
: ${M(t)}, ${H(t,_e(o))}`}function Nt(o,e,t){let n=c=>o.total_ns[c]??0,r=o.parent[e]??-1,s=c=>o.parent.flatMap((a,l)=>a===c?[l]:[]).sort((a,l)=>n(l)-n(a));if(t===
"ArrowUp")return r;if(t==="ArrowDown")return s(e)[0]??-1;if(t!=="ArrowLeft"&&t!=="ArrowRight")return null;let i=s(r);return i[i.indexOf(e)+(t==="ArrowRight"?1:-1)]??
-1}var Dt=o=>o.replace(/^.*\/(?=[^/]*\(\d+\): )/,"").replace(/^void /,"");function Gt(o){return/\(\d+\): |^<built-in|^nn\.Module/.test(o)?"python":/^(cuda|cu|hip)[A-Z]/.
test(o)?"api":/^(aten|autograd|torch|c10d|nccl|prims|inductor)::|Backward\d*$/.test(o)?"op":/[<(]|kernel|gemm|^Mem(cpy|set)/i.test(o)?"kernel":"range"}var J=1e3,ce=220,z=76,de=12,Ft=12,qe=26,Bt=3;function Wt(o,e){let t=0,n=o.length;for(;t<n;){let r=t+n>>1;(o[r]??0)<=e?t=r+1:n=r}return Math.max(t-1,0)}function Ve(o,e,t){
for(let n of o.curves)e.append(...zt(n,t))}function zt(o,e){let t=o.times_ns[0]??0,n=Math.max(o.times_ns.at(-1)??0,t+1),r=Math.max(1,...o.allocated_bytes),s=Math.
max(0,...o.reserved_bytes),i=o.allocated_bytes.indexOf(r),c=s<=Bt*r?Math.max(r,s):r,a=v=>z+(v-t)/(n-t)*(J-z-de),l=v=>ce-qe-v/c*(ce-Ft-qe),u=v=>v.map((y,A)=>`${A?
`H${a(o.times_ns[A]??0).toFixed(1)}V`:`M${a(t)} `}${l(y).toFixed(1)}`).join("")+`H${J-de}`,h=d("p",{class:"quiet",role:"status"}),m=v=>{let y=o.reserved_bytes[v];
h.textContent=`${M(o.times_ns[v]??0)}: ${P(o.allocated_bytes[v]??0)} allocated${y===void 0?"":`, ${P(y)} reserved`}`},p=v=>{let y=L.getBoundingClientRect(),A=(v.
clientX-y.left)/y.width*J;return Wt(o.times_ns,t+(A-z)/(J-z-de)*(n-t))},f=v=>{let y=o.times_ns[v]??0,A=(n-t)/50;e.goTo(y-A,y+A)},g=i,w=k("circle",{r:4,class:"ma\
rk",cx:0,cy:0}),T=v=>{g=v,w.setAttribute("cx",String(a(o.times_ns[v]??0))),w.setAttribute("cy",String(l(o.allocated_bytes[v]??0))),m(v)},L=k("svg",{viewBox:`0 0\
 ${J} ${ce}`,class:"chart memory",role:"slider",tabindex:0,"aria-label":`Memory of ${o.title}, peak ${P(o.allocated_bytes[i]??0)}`,"aria-valuemin":0,"aria-value\
max":o.times_ns.length-1,"aria-valuenow":i,onmousemove:v=>T(p(v)),onclick:v=>f(p(v)),onkeydown:v=>{let{key:y}=v,A=y==="ArrowRight"?1:y==="ArrowLeft"?-1:0;A?(v.preventDefault(),
T(Math.min(Math.max(g+A,0),o.times_ns.length-1)),L.setAttribute("aria-valuenow",String(g)),L.setAttribute("aria-valuetext",h.textContent??"")):y==="Enter"&&f(g)}});
for(let v of[0,.5,1])L.append(k("path",{class:"grid",d:`M${z} ${l(v*c)}H${J-de}`}),k("text",{x:z-8,y:l(v*c),class:"end dim"},P(v*c)));for(let v of[0,.25,.5,.75,
1])L.append(k("text",{x:a(t+v*(n-t)),y:ce-8,class:v===1?"end dim":"middle dim"},M(t+v*(n-t))));c>=s&&s&&L.append(k("path",{class:"reserved",d:u(o.reserved_bytes)})),
L.append(k("path",{class:"area",d:`${u(o.allocated_bytes)}V${l(0)}H${z}z`}),k("path",{class:"allocated",d:u(o.allocated_bytes)}),w),T(i);let x=s?`, ${P(s)} rese\
rved${s>c?" (far above the picture)":" (dashed)"}`:"";return[d("h3",{},o.title,d("small",{},`peak ${P(r)} allocated${x}`)),L,h]}function je(o,e){e.append(d("dl",{class:"numbers"},...o.entries.flatMap(t=>[d("dt",{},t.number),d("dd",{},...t.value?[d("b",{},t.value)," "]:[],t.how)])))}var Kt=15,Xt=(o,e)=>{if(o===null||o==="")return"–";if(typeof o=="string")return o;switch(e){case"ns":return M(o);case"bytes":return P(o);case"bytes_per_second":
return`${P(o)}/s`;case"share":return H(o,1);case"gain":return D(o);case"count":return _(o);default:return String(Math.round(o*100)/100)}};function Yt(o,e){let t=e.
falling?-1:1;return[...o].sort((n,r)=>{let s=n[e.column]??null,i=r[e.column]??null;return s===null||i===null?+(s===null)-+(i===null):typeof s=="number"&&typeof i==
"number"?t*(s-i):t*String(s).localeCompare(String(i),"en")})}function qt(o,e){let t=e.toLowerCase().split(/\s+/).filter(Boolean);return o.filter(n=>{let r=n.filter(
s=>typeof s=="string").join(" ").toLowerCase();return t.every(s=>r.includes(s))})}function Vt(o,e,t){let n=e.flatMap((a,l)=>a.sums?[l]:[]),r=new Map;for(let a of o){
let l=String(a[t]??"–"),u=r.get(l)??[0,...n.map(()=>0)];u[0]=(u[0]??0)+1,n.forEach((h,m)=>{u[m+1]=(u[m+1]??0)+Number(a[h]??0)}),r.set(l,u)}let s=[t,...n].flatMap(
a=>e[a]??[]),[i,...c]=s;return{columns:[...i?[i]:[],{title:"rows",unit:"count",group:!1,sums:!0},...c],rows:[...r].map(([a,l])=>[a,...l])}}var Ze=[],Qe=o=>Ze.some(
e=>e(o));function et(o,e,t){for(let n of o.tables)e.append(jt(n,t))}function jt(o,e){let t=null,n=null,r=!1,s=`table-${o.title.toLowerCase().replace(/\W+/g,"-")}`,
i=d("input",{type:"search",placeholder:"Filter","aria-label":`Filter ${o.title.toLowerCase()}`,oninput:()=>w()}),c=o.columns.flatMap((x,v)=>x.group?[d("option",
{value:v},x.title)]:[]),a=d("select",{"aria-label":`Group ${o.title.toLowerCase()} by`,onchange:()=>{n=a.value===""?null:Number(a.value),t=null,w()}},d("option",
{value:""},"not grouped"),...c),l=d("span",{class:"quiet",role:"status"}),u=d("thead"),h=d("tbody"),m=d("button",{type:"button",onclick:()=>{r=!0,w()}},"Show al\
l"),p=d("caption",{class:"sr"},o.title),f=d("div",{class:"table-view",id:s},d("h3",{},o.title),d("p",{class:"tools"},i," ",...c.length?[d("label",{},"group by ",
a)," "]:[],l),d("div",{class:"wide"},d("table",{},p,u,h)),m),g=(x,v)=>{t={column:x,falling:t?.column===x?!t.falling:!v},w(x)};function w(x){let v=qt(o.rows,i.value),
y=n===null?{columns:[...o.columns],rows:v}:Vt(v,o.columns,n),A=Yt(y.rows,t??Je(y.columns)),$=r||n!==null?A:A.slice(0,Kt),C=t??Je(y.columns);u.replaceChildren(d(
"tr",{},...y.columns.map((R,I)=>T(R,I,C)))),h.replaceChildren(...$.map(R=>d("tr",{},...y.columns.map((I,W)=>L(R,I,W))))),x!==void 0&&u.querySelectorAll("button")[x]?.
focus();let O=o.left_out?`; ${te(o.left_out,"shorter one")} not on this page`:"";l.textContent=`${te($.length,n===null?"row":"group")} of ${_(n===null?o.rows.length:
A.length)}${O}`,m.hidden=$.length===A.length,m.textContent=`Show all ${_(A.length)}`}function T(x,v,y){let A=x.unit==="text",$=y.column===v,C=d("button",{type:"\
button",class:"sort",onclick:()=>g(v,A)},x.title,d("span",{"aria-hidden":"true"},$?y.falling?" ▾":" ▴":""));return d("th",{scope:"col",class:A?"":"number","\
aria-sort":$?y.falling?"descending":"ascending":"none"},C)}function L(x,v,y){let A=Xt(x[y]??null,v.unit);if(y>0)return d("td",{class:v.unit==="text"?"":"number"},
A);let $=n===null?()=>e.search(A):()=>{i.value=A,n=null,a.value="",w()};return d("th",{scope:"row",class:"name"},d("button",{type:"button",class:"link",title:n===
null?`${A}
Show it on the timeline`:"Show its rows",onclick:$},A))}return Ze.push(x=>o.rows.some(v=>v[0]===x)?(i.value=x,n=null,a.value="",w(),f.scrollIntoView({block:"nea\
rest"}),!0):!1),w(),f}function Je(o){let e=o.findIndex(t=>t.unit==="ns");return{column:Math.max(e,0),falling:e>=0}}var Z=1e3,G=520,re=74,ue=24,tt=20,he=46;function Jt(o){let e=[...o.dots.map(s=>s.intensity),...o.compute.map(s=>s.value/o.memory.value)].map(Math.log10),t=[...o.
dots.map(s=>s.flops_per_second),...o.compute.map(s=>s.value)].map(Math.log10),n=s=>Math.floor(Math.min(...s)),r=s=>Math.ceil(Math.max(...s)+.05);return{x:[n(e),
r(e)],y:[n(t),r(t)]}}function st(o){let[e,t]=o>=1e12?[1e12,"T"]:o>=1e9?[1e9,"G"]:[1e6,"M"];return`${(o/e).toPrecision(3)} ${t}FLOP/s`}function ot(o,e,t){let{x:[
n,r],y:[s,i]}=Jt(o),c=y=>re+(Math.log10(y)-n)/(r-n)*(Z-re-ue),a=y=>G-he-(Math.log10(y)-s)/(i-s)*(G-tt-he),l=k("svg",{viewBox:`0 0 ${Z} ${G}`,class:"chart roofli\
ne",role:"group","aria-label":`Roofline of ${o.device}, ${o.dots.length} ops. Arrow keys move between them.`});for(let y=n;y<=r;y++){let A=c(10**y);l.append(k("\
path",{class:"grid",d:`M${A} ${tt}V${G-he}`}),k("text",{x:A,y:G-he+16,class:"middle dim"},nt(y)))}for(let y=s;y<=i;y++){let A=a(10**y);l.append(k("path",{class:"\
grid",d:`M${re} ${A}H${Z-ue}`}),k("text",{x:re-8,y:A,class:"end dim"},nt(y-12)))}l.append(k("text",{x:(re+Z)/2,y:G-8,class:"middle dim"},"arithmetic intensity (\
FLOP per byte)"),k("text",{x:16,y:G/2,class:"middle dim",transform:`rotate(-90 16 ${G/2})`},"TFLOP/s"));let u=o.memory.value,h=Math.max(...o.compute.map(y=>y.value),
10**s),m=Math.max(10**n,10**s/u),p=[c(m),a(m*u)],f=[c(h/u),a(h)],g=Math.atan2(f[1]-p[1],f[0]-p[0])*180/Math.PI,[w,T]=[.72*p[0]+.28*f[0],.72*p[1]+.28*f[1]],L=[k(
"text",{x:w,y:T-11,class:"middle roof-name",transform:`rotate(${g} ${w} ${T})`},`memory ${P(u)}/s, ${o.memory.source}`)];l.append(k("path",{class:"roof",d:`M${p.
join(" ")}L${f.join(" ")}`}));let x=-1/0;for(let y of o.compute){let A=a(y.value);l.append(k("path",{class:"roof",d:`M${c(y.value/u)} ${A}H${Z-ue}`})),A-x>=14&&
(L.push(k("text",{x:Z-ue-4,y:A-9,class:"end roof-name"},`${y.name} ${st(y.value)}, ${y.source}`)),x=A)}let v=d("p",{class:"quiet",role:"status"},`${o.device}. T\
he drawn ops take ${H(o.drawn_ns,o.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or use the arrow keys.`);l.append(...Zt(o,c,a,v,t),...L),
e.append(l,Qt(),v)}var nt=o=>o>=-4&&o<=4?String(10**o):`1e${o}`;function rt(o,e){let t=o.roof_pct===null?"":`, ${o.roof_pct.toFixed(1)} % of its roof`;return`${o.
name} ${o.shapes}: ${M(o.time_ns)} in ${_(o.calls)} calls (${H(o.time_ns,e)} of GPU time), ${st(o.flops_per_second)}${t}${o.bound?`, ${o.bound}-bound`:""}`}function Zt(o,e,t,n,r){
let s=Math.max(...o.dots.map(a=>a.time_ns)),i=[],c=a=>{i.forEach((u,h)=>{u.setAttribute("tabindex",h===a?"0":"-1"),u.classList.toggle("selected",h===a)});let l=o.
dots[a];l&&(n.textContent=rt(l,o.total_ns))};return o.dots.forEach((a,l)=>{let u=()=>{c(l),Qe(a.name)||r.search(a.name)},h=f=>{let{key:g}=f,w=g==="ArrowRight"||
g==="ArrowDown"?1:g==="ArrowLeft"||g==="ArrowUp"?-1:0;if(w){f.preventDefault();let T=(l+w+i.length)%i.length;c(T),i[T]?.focus()}else(g==="Enter"||g===" ")&&(f.preventDefault(),
u())},m=rt(a,o.total_ns),p=3.5+13*Math.sqrt(a.time_ns/s);i.push(k("circle",{cx:e(a.intensity),cy:t(a.flops_per_second),r:p,class:`dot ${a.bound||"unknown-bound"}`,
tabindex:l===0?0:-1,role:"button","aria-label":m,onclick:u,onkeydown:h,onfocus:()=>c(l)},k("title",{},m)))}),i}function Qt(){let o=e=>d("li",{},k("svg",{class:"\
swatch",viewBox:"0 0 10 10","aria-hidden":"true"},k("circle",{cx:5,cy:5,r:5,class:`dot ${e}`})),`${e}-bound`);return d("ul",{class:"legend"},...["compute","memo\
ry","latency"].map(o))}var se=120,it=1e3,en=48;function at(o,e,t){let n=o.lengths_ns.length,r=Math.max(1,...o.lengths_ns),s=Math.min(en,it/n),i=Math.max(.5,s*.82),c=k("svg",{viewBox:`\
0 0 ${it} ${se}`,class:"steps",role:"img","aria-label":`${n} steps, the longest ${M(r)}`});o.lengths_ns.forEach((a,l)=>{let u=o.busy_ns[l]??0,h=o.starts_ns[l]??
0,m=l*s,p=a/r*se,f=u/r*se,g=k("g",{class:"step-bar",onclick:()=>t.goTo(h,h+a)},k("title",{},`step ${l}: ${M(a)}, GPU busy ${H(u,a)}`),k("rect",{x:m,width:i,y:se-
p,height:p,class:"part idle"}),k("rect",{x:m,width:i,y:se-f,height:f,class:"part compute"}));c.append(g)}),e.append(c,d("p",{class:"quiet"},"Height: length of t\
he step; dark: GPU busy. Click a step to see it on the timeline."))}var lt=1e3,U=70,tn=190,K=22,Re=12;function nn(o,e){return o.replayed.find(t=>t.fixes.length===e.size&&t.fixes.every(n=>e.has(n)))}function rn(o,e){let t=[...e].
sort((n,r)=>n-r).map(n=>`--fix ${o.fixes[n]?.name??""}`);return["warpline whatif",sn(o.file),...t].join(" ")}var sn=o=>/^[\w./:@%+=-]+$/.test(o)?o:`'${o.replaceAll(
"'",`'"'"'`)}'`;function ct(o,e){let t=new Set,n=[],r=d("div",{class:"whatif-answer",role:"status","aria-live":"polite"}),s=()=>{n.forEach((l,u)=>{l.checked=t.has(
u)}),r.replaceChildren(...on(o,t))},i=l=>{t.clear();for(let u of l)t.add(u);s()},c=d("fieldset",{class:"fixes"},d("legend",{},"Fixes"));o.fixes.forEach((l,u)=>{
let h=d("input",{type:"checkbox",onchange:()=>{t.delete(u)||t.add(u),s()}});n.push(h);let m=o.planned.indexOf(u),p=[l.effort,l.confidence?`${l.confidence} confi\
dence`:"no finding alone",m>=0?`plan ${m+1}`:""].filter(Boolean);c.append(d("label",{title:l.claim},h,d("b",{},l.words),d("span",{class:"quiet"},` ${p.join(", ")}`)))});
let a=d("p",{class:"buttons"},d("button",{type:"button",onclick:()=>i([])},"None")," ",...o.planned.length?[d("button",{type:"button",onclick:()=>i(o.planned)},
"The plan")]:[]);e.append(d("div",{class:"whatif"},d("div",{},c,a),r)),i(o.planned.slice(0,1))}function on(o,e){if(!e.size)return[Pe(`The step takes ${M(o.step_ns)}\
 without a profiler. Tick a fix.`),Ce(o)];let t=nn(o,e);if(!t)return[Pe("This combination was not replayed for this page."),d("p",{class:"quiet"},"Fixes overlap\
, so their gains do not multiply. This command replays it:"),d("pre",{},rn(o,e)),Ce(o)];let{low:n,expected:r,high:s}=t.step_ns,i=o.step_ns/r;return[Pe(`${M(o.step_ns)}\
 → ${M(r)}, ${D(i)}`),d("p",{class:"quiet"},`The 80 % range of the step is ${M(n)} to ${M(s)} (${D(o.step_ns/s)} to ${D(o.step_ns/n)}). `+(o.step_ns/s<1?"It i\
ncludes no gain.":"Replayed on this trace's graph, without a profiler.")),Ce(o,t)]}var Pe=o=>d("p",{class:"strong"},o);function Ce(o,e){let t=Math.max(o.step_ns,
e?.step_ns.high??0),n=(lt-U-tn)/t,r=k("svg",{viewBox:`0 0 ${lt} ${2*K+2*Re}`,class:"chart","aria-hidden":"true"}),s=(i,c,a,l)=>{let u=i*(K+Re)+2;r.append(k("tex\
t",{x:U-10,y:u+K/2,class:"end"},c),k("rect",{x:U,y:u,width:a*n,height:K,class:l}))};if(s(0,"now",o.step_ns,"before"),r.append(k("text",{x:U+o.step_ns*n+8,y:K/2+
2},M(o.step_ns))),e){let{low:i,expected:c,high:a}=e.step_ns,l=K+Re+2+K/2;s(1,"after",c,"after"),r.append(k("path",{class:"whisker",d:`M${U+i*n} ${l}H${U+a*n}M${U+
i*n} ${l-6}v12M${U+a*n} ${l-6}v12`})),r.append(k("text",{x:U+a*n+8,y:l},M(c)))}return r}var F=(o,e,t)=>({name:o,title:e,draw:t}),dt=[F("whatif","What if",ct),F("steps","Steps",at),F("tables","Tables",et),F("roofline","Roofline",ot),F("flame","Flame\
 graph",Ye),F("budget","Dispatch budget",Xe),F("memory","Memory",Ve),F("numbers","How each number was made",je)];var ut="warpline-theme",ht=()=>matchMedia("(prefers-color-scheme: dark)"),mt=[];function an(){try{let o=localStorage.getItem(ut);return o==="light"||o==="dark"?
o:null}catch{return null}}var me=()=>(document.documentElement.dataset.theme??(ht().matches?"dark":"light"))==="dark";function pt(o){mt.push(o)}function ft(){let o=an();
o&&(document.documentElement.dataset.theme=o);let e=d("button",{type:"button",class:"theme"}),t=()=>{let r=me()?"Light":"Dark";e.textContent=r,e.setAttribute("a\
ria-label",`${r} colours`)},n=()=>{t();for(let r of mt)r()};return e.addEventListener("click",()=>{let r=me()?"light":"dark";document.documentElement.dataset.theme=
r;try{localStorage.setItem(ut,r)}catch{}n()}),ht().addEventListener("change",n),t(),e}function ln(o){let e=Uint8Array.fromBase64;if(e)return e.call(Uint8Array,o);let t=atob(o),n=new Uint8Array(t.length);for(let r=0;r<t.length;r++)n[r]=t.charCodeAt(
r);return n}async function Oe(o){let{readable:e,writable:t}=new DecompressionStream("deflate-raw"),n=t.getWriter(),r=e.getReader(),s=()=>{};n.write(o).catch(s),
n.close().catch(s);let i=[],c=0;for(let l=await r.read();!l.done;l=await r.read())i.push(l.value),c+=l.value.length;let a=new Uint8Array(c);for(let l=0,u=0;u<i.
length;l+=i[u++].length)a.set(i[u],l);return a}async function pe(o){let e=j(o),t=e.textContent??"";return e.remove(),Oe(ln(t))}function Q(o,e=0){let t=e+4+new DataView(
o.buffer).getUint32(e,!0);return{head:JSON.parse(new TextDecoder().decode(o.subarray(e+4,t))),bytes:o,at:t}}async function gt(o){return JSON.parse(new TextDecoder().
decode(await pe(o)))}function fe(o,e,t,n,r){let s=o[e++]??0,i=e+t,c=i+t;if(s<2)n.set(o.subarray(e,i),r);else if(s===2)for(let a=0;a<t;a++)n[r+a]=o[e+a]+o[i+a]*256;else
for(let a=0;a<t;a++)n[r+a]=o[e+a]+o[i+a]*256+o[c+a]*65536;for(let a=3,l=2**24;a<s;a++,l*=256){let u=e+a*t;for(let h=0;h<t;h++)n[r+h]+=o[u+h]*l}return e+s*t}var He=o=>o%
2?-(o+1)/2:o/2;var cn=200,dn=1,un=.25,ge=class o{constructor(e){this.timeline=e}timeline;waiting=0;asked=0;moved(){clearTimeout(this.waiting),this.waiting=setTimeout(()=>{this.
fetch()},cn)}static areMissing(e,t,n,r){let s=n-t;return!e.least_ns||s/r>e.least_ns||s>un*e.length_ns?!1:!e.detailed||t<e.detailed[0]||n>e.detailed[1]}async fetch(){
let e=this.timeline();if(!e)return;let{time:t,events:n}=e,r=Math.max(0,t.start),s=Math.min(t.length,t.end),i=++this.asked;if(!o.areMissing(n.head,r,s,e.picture.
width))return;let c=dn*(s-r),a=Math.floor(Math.max(0,r-c)),l=Math.ceil(Math.min(t.length,s+c)),u=await fetch(`rows?start=${a}&end=${l}`);if(!u.ok||i!==this.asked)
return;let{head:h,bytes:m,at:p}=Q(await Oe(new Uint8Array(await u.arrayBuffer())));e.replace(h,m,p)}};var bt=o=>{let e=/^(-?\d+)-(\d+)$/.exec(o??"");return e?[Number(e[1]),Number(e[2])]:void 0};function Ie(o){let e=new URLSearchParams(o.replace(/^#/,"")),t=bt(e.
get("at")),n=bt(e.get("range")),r=e.get("event");return{...t?{at:t}:{},...n?{range:n}:{},...r!==null&&/^\d+$/.test(r)?{event:Number(r)}:{}}}function yt({at:o,event:e,
range:t}){let n=r=>r.map(s=>Math.max(0,Math.round(s))).join("-");return[o?`at=${n(o)}`:"",e!==void 0?`event=${e}`:"",t?`range=${n(t)}`:""].filter(Boolean).join(
"&")}var hn=["gpu","idle","syncs"],mn=["api","ops","ranges","python"],pn={api:"CUDA API",ops:"ops",ranges:"ranges",python:"Python"},oe=class{rows=[];pinned;height;rowOf=new Map;y=0;constructor(e,t){
let{groups:n,head:r}=e,s=new Map;for(let c of n)s.set(c.track.thread,[...s.get(c.track.thread)??[],c]);for(let c of fn(n.map(a=>a.track.device))){this.add(22,{title:`\
GPU ${c}`});for(let a of hn)for(let l of n)l.track.device===c&&l.track.kind===a&&this.addGroup(l,l.track.label)}let i=this.y;for(let c of gn(n)){this.add(22,{title:r.
threads[c]??"thread"});for(let a of mn)for(let l of s.get(c)??[])l.track.kind===a&&this.addGroup(l,pn[a]??a)}this.height=this.y,this.pinned=i>t*.5?0:i}of(e){return this.
rowOf.get(e)}add(e,t){let n={y:this.y,height:e,...t};this.rows.push(n),n.lane&&this.rowOf.set(n.lane,n),this.y+=e}addGroup(e,t){let n=e.lanes,r=this.y;if(!n.length)
return;let s=n.length>1||e.track.kind==="python";for(let i of e.open?n:n.slice(0,14)){let c=i.depth===0;this.add(e.open?17:3,{lane:i,...c?{label:t}:{},...c&&s?{
toggles:e}:{},...e.open?{}:{thin:!0}})}this.y=Math.max(this.y,r+17)+5}},fn=o=>[...new Set(o.filter(e=>e!==null))].sort((e,t)=>e-t);function gn(o){let e=new Map;
for(let{track:n}of o){if(n.thread===null)continue;let r=e.get(n.thread)??{};r[n.kind]=(r[n.kind]??0)+n.lanes.reduce((s,i)=>s+i,0),e.set(n.thread,r)}return[...e].
map(([n,{api:r=0,ops:s=0,ranges:i=0,python:c=0}])=>({thread:n,main:+(r>0&&i+c>0),api:r,ops:s})).sort((n,r)=>r.main-n.main||r.api-n.api||r.ops-n.ops||n.thread-r.
thread).map(({thread:n})=>n)}var bn={matmul:[.56,.115,257],attention:[.5,.12,287],norm:[.66,.09,215],kernel:[.74,.06,240],copy:[.6,.1,308],memset:[.8,.02,250],comm:[.6,.15,350],graph:[.62,.08,
180],launch:[.8,.045,165],wait:[.66,.13,38],api_copy:[.74,.075,308],allocate:[.62,.09,20],api:[.83,.015,200],op:[.81,.05,255],range:[.88,.04,130],python:[.88,.022,
85],module:[.83,.055,90],sync:[.72,.1,45],idle:[.84,.01,250]},yn={dispatch:"e69f00",sync:"d55e00",transfer:"56b4e9",input:"009e73",memory:"f0e442",comm:"cc79a7",
cold_start:"8c5a3c",launch_latency:"9aa0a6",dependency:"0072b2",profiler:"5f6368",unknown:"c9cdd2"},vn=new Set(["op","range","python","module"]),wn=new Set(["la\
unch","api","memset"]),xn=new Set(["matmul","attention"]),kn=new Set(["launch","wait","api_copy","allocate","api","op","range","python","module"]);function Mn([
o,e,t]){let n=e*Math.cos(t*Math.PI/180),r=e*Math.sin(t*Math.PI/180),s=(o+.3963377774*n+.2158037573*r)**3,i=(o-.1055613458*n-.0638541728*r)**3,c=(o-.0894841775*n-
1.291485548*r)**3,a=l=>Math.round(255*Math.min(1,Math.max(0,l<=.0031308?12.92*l:1.055*l**(1/2.4)-.055)));return[a(4.0767416621*s-3.3077115913*i+.2309699292*c),a(
-1.2684380046*s+2.6097574011*i-.3413193965*c),a(-.0041960863*s-.7034186147*i+1.707614701*c)]}var ye=o=>{let e=o.replace("#","");return[0,2,4].map(t=>parseInt(e.
slice(t,t+2),16))},vt=o=>`rgb(${o.join(" ")})`,X=o=>(255<<24|o[2]<<16|o[1]<<8|o[0])>>>0,Ue=(o,e,t)=>o.map((n,r)=>Math.round(n*t+e[r]*(1-t))),Ne=o=>ye(yn[o]??"c9\
cdd2");function be(o,e,t=.5){let[n,r,s]=bn[o],i=n;return e&&(i=vn.has(o)?1.22-i:wn.has(o)?i-.3:xn.has(o)?i+.05:i-.04),Mn([i+(t-.5)*.055,r,s+(t*7%1-.5)*(kn.has(o)?
46:16)])}function En(o){let e=2166136261;for(let t=0;t<o.length;t++)e=Math.imul(e^o.charCodeAt(t),16777619);return(e>>>8)%997/997}var Tn=o=>.299*o[0]+.587*o[1]+
.114*o[2]>135;function wt(o,e,t){let n=new Uint32Array(o.length),r=new Uint32Array(o.length),s=new Uint8Array(o.length);return o.forEach((i,c)=>{let a=i.cause!==
null?Ne(i.cause):null,l=a??be(i.kind,e,En(i.short||i.text));n[c]=X(l),r[c]=X(Ue(l,t,.24)),s[c]=Tn(a??be(i.kind,e))?1:0}),{full:n,faded:r,darkInk:s}}var Y='Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';function xt(){let o=getComputedStyle(document.documentElement),e=r=>o.getPropertyValue(
`--${r}`).trim(),t={paper:e("paper"),ink:e("ink"),dim:e("dim"),rule:e("rule"),grid:e("grid"),band:e("band"),accent:e("accent")},n=r=>X(ye(r));return{dark:me(),paper:ye(
t.paper),css:t,pixels:{paper:n(t.paper),grid:n(t.grid),rule:n(t.rule)}}}var ie=class{constructor(e,t){this.events=e;this.width=t;this.line=new Uint32Array(t)}events;width;line;draw(e,t,n,r,s,i){let{events:c,line:a,width:l}=this,{start:u,
end:h,sum:m,name:p}=c,{beyond:f}=e,g=t+l/n,w=e.group.track.kind==="idle",T=c.after(e,t),L=!1;for(;T<f&&u[T]<g;){L=!0;let x=(u[T]-t)*n,v=(h[T]-t)*n;if(v-x>=1.5){
let R=Math.max(0,x),I=Math.min(l,v-x>4?v-1:v),W=r[p[T]],q=Math.ceil(R),V=Math.floor(I);V>q&&a.fill(W,q,V),q>R&&q<=l&&this.blend(q-1,W,q-R),I>V&&V<l&&this.blend(
V,W,I-V),i&&i(T,R,I),T++;continue}let y=Math.max(0,Math.floor(x)),A=t+(y+1)/n,$=c.leap(T,f,A);$-1>T&&(h[$-1]-u[$-1])*n>=1.5&&$--;let C=Math.max(0,h[$-1]-A)*n,O=(m[$]-
m[T])*n-C;if(y<l){let R=s!==null&&s.before[$]>s.before[T],I=$-T===1?T:R?An(s,T,$):c.longest(T,$),W=O>=1||R?1:w?Math.max(.08,O):Math.max(.25,Math.sqrt(Math.max(0,
O)));this.blend(y,r[p[I]],W),C>.05&&y+1<l&&this.blend(y+1,r[p[$-1]],Math.min(1,C))}T=$}return L}blend(e,t,n){let r=this.line[e],s=1-n,i=(t>>>16&255)*n+(r>>>16&255)*
s,c=(t>>>8&255)*n+(r>>>8&255)*s,a=(t&255)*n+(r&255)*s;this.line[e]=(255<<24|i<<16|c<<8|a)>>>0}};function An(o,e,t){let n=o.before[e],r=e,s=t-1;for(;r<s;){let i=r+
s>>>1;o.before[i+1]>n?s=i:r=i+1}return r}var Ln=26,$n=110,we=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d",{alpha:!1}),this.layout=new oe(t,0),this.raster=
new ie(t,1),this.image=new ImageData(1,1),this.pixels=this.ground=new Uint32Array(1)}canvas;events;time;layout;scroll=0;width=64;height=64;took={raster:0,draw:0};context;size={
width:0,height:0,ratio:1};ratio=1;raster;image;pixels;ground;textWidths=new Map;has({width:e,height:t,ratio:n}){return this.size.width===e&&this.size.height===t&&
this.size.ratio===n}resize(e){let{width:t,height:n,ratio:r}=this.size=e;this.width=Math.max(224,Math.floor(t)),this.height=Math.max(71,Math.floor(n)),this.ratio=
r,this.canvas.width=this.width*r,this.canvas.height=this.height*r;let s=Math.floor((this.width-160)*r),i=Math.floor((this.height-39)*r);this.image=new ImageData(
s,i),this.pixels=new Uint32Array(this.image.data.buffer),this.raster=new ie(this.events,s),this.ground=new Uint32Array(s),this.place()}place(){this.layout=new oe(
this.events,this.height-39)}x(e){return 160+(e-this.time.start)/this.time.span*(this.width-160)}timeAt(e){return this.time.start+(e-160)/(this.width-160)*this.time.
span}screenY(e){return 39+e.y-(e.y<this.layout.pinned?0:this.scroll)}box(e){let t=this.layout.of(this.events.laneOf(e));if(!t)return null;let n=this.x(this.events.
start[e]);return{x:n,right:Math.max(this.x(this.events.end[e]),n+2),y:this.screenY(t),height:t.height-(t.thin?0:1),row:t}}rowAt(e){let{rows:t,pinned:n}=this.layout,
r=e<39+n;return t.find(s=>s.y<n===r&&e>=this.screenY(s)&&e<this.screenY(s)+Math.max(s.height,s.toggles?17:0))}eventAt(e,t){let n=e<160||t<39?void 0:this.rowAt(t),
r=n?.lane;if(!r?.ready||t>=this.screenY(n)+n.height)return-1;let{events:s}=this,i=this.time.span/(this.width-160),c=this.timeAt(e),a=s.after(r,c-i);if(a>=r.beyond||
s.start[a]>c+i*1.5)return-1;let l=s.leap(a,r.beyond,c+i);return l-a<=1||s.start[a]<=c&&s.end[a]>c&&s.duration(a)>i*2?a:s.longest(a,l)}draw(e,t,n,r){let s=performance.
now(),{layout:i,context:c,ratio:a}=this;this.scroll=Math.max(0,Math.min(this.scroll,i.height-(this.height-39)+8));let l=Sn(this.time.span,(this.width-160)/$n),u=[];
this.background(e,l);let{pinned:h}=i;for(let m of i.rows)m.y>=h&&this.lane(m,h,n,r,u);for(let m of i.rows)m.y<h&&this.lane(m,0,n,r,u);c.setTransform(a,0,0,a,0,0),
c.putImageData(this.image,Math.round(160*a),Math.round(39*a)),this.took.raster=performance.now()-s,this.labels(u,e,t,r),this.ruler(e,l),this.names(e),this.took.
draw=performance.now()-s}background(e,t){let{ground:n,pixels:r,time:s}=this,i=n.length,c=this.image.height,a=i/s.span;n.fill(e.pixels.paper);for(let l=Math.ceil(
s.start/t)*t;l<s.end;l+=t)n[Math.min(i-1,Math.floor((l-s.start)*a))]=e.pixels.grid;for(let l of this.events.head.steps)for(let u of[l.start_ns,l.end_ns])u>s.start&&
u<s.end&&(n[Math.floor((u-s.start)*a)]=e.pixels.rule);r.set(n,0);for(let l=1;l<c;l*=2)r.copyWithin(l*i,0,Math.min(l,c-l)*i)}lane(e,t,n,r,s){if(!e.lane?.ready)return;
let{ratio:i,raster:c,pixels:a}=this,l=c.width,u=this.image.height,h=this.screenY(e)-39;if(h+e.height<=t||h>=this.height-39)return;c.line.set(this.ground);let m=Ln*
i,p=e.thin?null:(w,T,L)=>{L-T>m&&s.push({i:w,left:T/i,right:L/i,y:h,floor:t})};if(!c.draw(e.lane,this.time.start,l/this.time.span,n,r,p))return;let f=Math.max(Math.
round(t*i),Math.round(h*i)),g=Math.min(u,Math.round((h+e.height-(e.thin?0:1))*i));for(let w=f;w<g;w++)a.set(c.line,w*l)}fitted(e,t){let n=this.textWidths.get(e);
if(n===void 0&&this.textWidths.set(e,n=this.context.measureText(e).width),n<=t)return e;let r=Math.floor(e.length*(t-8)/n);return r<2?"":`${e.slice(0,r)}…`}labels(e,t,n,r){
let{context:s,events:i}=this;s.font=`11px ${Y}`,s.textBaseline="middle",s.textAlign="left";let c=a=>r&&!r.names[a]?t.css.dim:n.darkInk[a]?"#14181d":"#fff";for(let a of[
"#14181d","#fff",t.css.dim]){s.fillStyle=a;for(let{i:l,left:u,right:h,y:m,floor:p}of e){if(c(i.name[l])!==a||m+4<p)continue;let f=this.fitted(i.label(l),h-u-8);
f&&s.fillText(f,160+u+4,39+m+17/2)}}}ruler(e,t){let{context:n,time:r,width:s}=this,{steps:i}=this.events.head;n.fillStyle=e.css.paper,n.fillRect(0,0,s,39),n.fillStyle=
e.css.dim;let[c,a]=r.end>=1e9?["s",1e9]:r.end>=1e6?["ms",1e6]:["µs",1e3],l=Math.max(0,-Math.floor(Math.log10(t/a)+1e-9));for(let u=Math.ceil(r.start/t)*t;u<r.end;u+=
t){let h=this.x(u);n.fillRect(Math.floor(h),16,1,6),n.fillText(`${(u/a).toFixed(l)} ${c}`,h+4,22/2+1)}n.save(),n.beginPath(),n.rect(160,22,s-160,17),n.clip(),i.
forEach((u,h)=>{let m=this.x(u.start_ns),p=this.x(u.end_ns);if(p<160||m>s)return;n.fillStyle=e.css.band,n.fillRect(m,22,Math.max(1,p-m-1),14);let f=Math.max(m,160),
g=this.fitted(`step ${h}  ${M(u.end_ns-u.start_ns)}`,Math.min(p,s)-f-10);n.fillStyle=e.css.dim,g&&n.fillText(g,f+5,22+17/2-1)}),n.restore()}names(e){let{context:t,
layout:n,height:r}=this,{rows:s,pinned:i}=n;t.fillStyle=e.css.paper,t.fillRect(0,39,160,r),t.save(),t.beginPath(),t.rect(0,39+i,160,r),t.clip();for(let c of s)c.
y>=i&&this.rowName(c,e);t.restore();for(let c of s)c.y<i&&this.rowName(c,e);t.fillStyle=e.css.rule,t.fillRect(159,0,1,r),t.fillRect(0,38,this.width,1),i&&t.fillRect(
0,39+i-1,this.width,1),t.fillStyle=e.css.dim,t.font=`11px ${Y}`,this.events.head.steps.length&&t.fillText("steps",10,22+17/2-1)}rowName(e,t){let{context:n}=this,
r=this.screenY(e);r>this.height||r+22<39||(e.title!==void 0?(n.fillStyle=t.css.ink,n.font=`600 11px ${Y}`,n.fillText(this.fitted(e.title,142),10,r+22/2+2)):e.label&&
(n.fillStyle=t.css.dim,n.font=`11px ${Y}`,n.fillText(this.fitted(e.label,130),22,r+17/2),e.toggles&&n.fillText(e.toggles.open?"▾":"▸",10,r+17/2)))}};function Sn(o,e){
let t=o/Math.max(2,e),n=10**Math.floor(Math.log10(t)),r=t/n;return n*(r>5?10:r>2?5:r>1?2:1)}var N=64,_n=64,b=-1,xe=class{head;particulars={launches:[],inputs:[],identities:[],spots:[],inside:[]};start;end;sum;name;argument;link;counts;groups=[];lanes=[];longestOf;constructor(e){
this.renew(e)}renew(e){let t=e.events,n=this.groups.map(s=>s.open);this.head=e,this.start=new Float64Array(t),this.end=new Float64Array(t),this.sum=new Float64Array(
t+1),this.name=e.names.length<65536?new Uint16Array(t):new Uint32Array(t),this.argument=new Uint32Array(t),this.link=new Int32Array(t).fill(b),this.counts=new Uint32Array(
e.names.length),this.longestOf=new Uint32Array(Math.ceil(t/N));let r=0;this.groups=e.tracks.map((s,i)=>{let c=[],a={track:s,lanes:c,open:n[i]??s.kind!=="python"};
return s.lanes.forEach((l,u)=>c.push({group:a,depth:u,first:r,beyond:r+=l,ready:!1})),a}),this.lanes=this.groups.flatMap(s=>s.lanes)}readFirst(e,t){return this.
readPictures(e,t,0,this.head.early_parts)}readRest(e,t){let n=this.head.early_parts,r=this.head.tracks.reduce((s,i)=>Math.max(s,i.part+1),0);({head:this.particulars,
at:t}=Q(e,t)),t=this.readRelations(e,t,0,n),t=this.readPictures(e,t,n,r),this.readRelations(e,t,n,r)}readPictures(e,t,n,r){for(let s=n;s<r;s++)t=this.readPicture(
e,t,this.lanes.filter(i=>i.group.track.part===s));return t}readRelations(e,t,n,r){let{argument:s,link:i}=this;for(let c=n;c<r;c++){let a=this.lanes.filter(m=>m.
group.track.part===c),l=a[0]?.first??0,u=(a[a.length-1]?.beyond??0)-l;t=fe(e,t,u,s,l);let h=new Float64Array(u);t=fe(e,t,u,h,0);for(let m=0,p=b;m<u;m++)i[l+m]=p+=
He(h[m])}return t}readPicture(e,t,n){let{start:r,end:s,sum:i,name:c,counts:a}=this,l=n[0]?.first??0,u=n[n.length-1]?.beyond??0,h=u-l;for(let p of[r,s,c])t=fe(e,
t,h,p,l);let m=i[l]??0;for(let p of n){let f=0;for(let g=p.first;g<p.beyond;g++){let w=s[g];r[g]=f+=He(r[g]),s[g]=f+=w,i[g+1]=m+=w,a[c[g]]++}p.ready=!0}for(let p=Math.
floor(l/N);p*N<u;p++){let f=Math.max(p*N,l);for(let g=f+1,w=Math.min(u,(p+1)*N);g<w;g++)this.duration(g)>this.duration(f)&&(f=g);this.longestOf[p]=f}return t}duration(e){
return this.end[e]-this.start[e]}text(e){return this.head.names[this.name[e]].text}label(e){let t=this.head.names[this.name[e]];return t.short||t.text}after(e,t){
let n=e.first,r=e.beyond;for(;n<r;){let s=n+r>>>1;this.end[s]>t?r=s:n=s+1}return n}leap(e,t,n){let{start:r}=this,s=1,i=e;for(;i+s<t&&r[i+s]<n;)i+=s,s*=2;let c=Math.
min(t,i+s);for(i++;i<c;){let a=i+c>>>1;r[a]<n?i=a+1:c=a}return i}longest(e,t){let n=e,r=this.duration(e),s=l=>{let u=this.duration(l);u>r&&(r=u,n=l)},i=Math.ceil(
e/N),c=Math.floor(t/N);if(c<=i){for(let l=e+1;l<t;l++)s(l);return n}for(let l=e+1;l<i*N;l++)s(l);let a=Math.max(1,Math.floor((c-i)/_n));for(let l=i;l<c;l+=a)s(this.
longestOf[l]);for(let l=c*N;l<t;l++)s(l);return n}find(e,t,n){for(let r of this.lanes)if(r.group.track.kind===e){for(let s=this.after(r,n);s<r.beyond&&this.start[s]<=
n;s++)if(this.start[s]===n&&this.name[s]===t)return s}return b}laneOf(e){let t=0,n=this.lanes.length-1;for(;t<n;){let r=t+n+1>>1;this.lanes[r].first<=e?t=r:n=r-
1}for(;this.lanes[t].beyond<=e;)t++;return this.lanes[t]}kind(e){return this.laneOf(e).group.track.kind}};var Rn=6,ke=class{constructor(e,t,n,r){this.events=e;this.relations=t;this.go=n;this.search=r}events;relations;go;search;list=d("dl");element(e){this.list.replaceChildren();
let{events:t}=this;switch(this.say("duration",M(t.duration(e))),this.say("begins",Pn(t.start[e])),t.kind(e)){case"gpu":this.operation(e);break;case"idle":this.gap(
e);break;case"api":this.call(e);break;case"ops":this.op(e);break;default:break}let n=t.head.names[t.name[e]];return n.short&&n.cause===null&&this.say("full name",
d("code",{},n.text)),d("div",{class:"body"},d("div",{class:"facts"},this.list),d("div",{class:"chain"},...this.inside(e),...this.within(e)))}same(e){let{events:t}=this,
n=t.label(e);return d("p",{class:"quiet"},`${_(t.counts[t.name[e]])} of this name · `,d("button",{class:"go",onclick:()=>this.search(n)},"search"))}say(e,...t){
let n=t.filter(r=>r!=null&&r!=="");n.length&&this.list.append(d("dt",{},e),d("dd",{},...n))}link(e,t=""){return d("button",{class:"go",title:this.events.text(e),
onclick:()=>this.go(e)},this.events.label(e)+t)}operation(e){let{events:t,relations:n}=this,{head:r,particulars:s,start:i}=t,c=s.launches[t.argument[e]-1],a=n.callOf(
e),l=r.names[t.name[e]].identity;c?.floor_ns!=null&&this.say("roofline",`${H(c.floor_ns,t.duration(e))} of it reached: at least ${M(c.floor_ns)}, bound by ${c.bound??
"?"}`);for(let[h,m]of s.identities[l??b]?.facts??[])this.say(h,m);c?.grid&&c.block&&(this.say("grid × block",`${c.grid.join(", ")} × ${c.block.join(", ")}`),this.
say("threads",_([...c.grid,...c.block].reduce((h,m)=>h*m,1)))),c?.registers!=null&&this.say("registers, shared",`${c.registers} a thread, ${P(c.shared_bytes??0)}\
 a block`),c?.moved_bytes!=null&&this.say("moved",`${P(c.moved_bytes)}${t.duration(e)?`, ${P(c.moved_bytes/t.duration(e)*1e9)}/s`:""}`),c?.source&&this.say("mem\
ory",`${c.source} → ${c.target??"?"}`),a!==b&&(this.say("launched by",this.link(a,`  ${M(t.duration(a))}`)),this.say("launch→start",M(i[e]-i[a])));let u=n.opOf(
e);u!==b&&(this.say("op",this.link(u)),this.inputs(u))}inside(e){let{events:t}=this,n=t.kind(e)==="gpu"?t.particulars.launches[t.argument[e]-1]?.inside:null,r=t.
particulars.inside[n??b];if(!r)return[];let s=r.facts.flatMap(([a,l])=>[d("dt",{},a),d("dd",{},l)]),i=document.getElementById(`inside-${n}`),c=d("button",{type:"\
button",class:"go",onclick:()=>{i.setAttribute("open",""),i.scrollIntoView({block:"start"})}},"all measured values");return[d("h3",{},"inside, by Nsight Compute"),
d("p",{},d("b",{},r.reason)),d("dl",{},...s),...i?[c]:[]]}inputs(e){let t=this.events.particulars.inputs[this.events.argument[e]-1];t&&(t.shapes&&this.say("shap\
es",d("code",{},t.shapes)),t.dtypes&&this.say("types",d("code",{},t.dtypes)),t.module&&this.say("module",t.module))}call(e){let{events:t,relations:n}=this,r=n.launched(
e),s=t.link[e];r.length&&(this.say("launches",this.link(r[0]),r.length>1?` and ${_(r.length-1)} more`:null),this.say("launch→start",M(t.start[r[0]]-t.start[e]))),
s!==b&&(this.say("op",this.link(s)),this.inputs(s))}op(e){let{events:t,relations:n}=this,r=t.link[e];this.inputs(e);let s=n.workOf(e);if(s.length){let i=s.reduce(
(c,a)=>c+t.duration(a),0);this.say("on the GPU",this.link(s[0]),s.length>1?` and ${_(s.length-1)} more, ${M(i)} in all`:null)}if(r!==b)this.say("backward of",this.
link(r));else{let i=n.backwardOf(e);i.length&&this.say("differentiated by",this.link(i[0]))}}gap(e){let{events:t}=this,n=t.laneOf(e),{start:r,end:s,link:i}=t,c=e,
a=e;for(;c>n.first&&i[c-1]===i[e]&&r[c]===s[c-1];)c--;for(;a+1<n.beyond&&i[a+1]===i[e]&&s[a]===r[a+1];)a++;let l=[];for(let u=c;u<=a;u++)l.push(`${t.label(u)} ${M(
t.duration(u))}`);this.say("whole gap",`${M(s[a]-r[c])}: ${l.join(", ")}`),i[e]!==b&&this.say("ended by",this.link(i[e]))}within(e){let{events:t,relations:n}=this,
r=t.laneOf(e),{kind:s}=r.group.track,i=n.callOf(e),c=r.group.track.thread!==null?e:i!==b?i:s==="gpu"?n.opOf(e):b;if(c===b)return[];let{thread:a}=t.laneOf(c).group.
track,l=t.start[c],u=n.around(n.group("python",a),l,s==="python"?r.depth:1/0),h=s==="python"?[]:n.around(n.group("ranges",a),l,s==="ranges"?r.depth:1/0),m=s==="\
python"||s==="ranges"?[]:n.around(n.group("ops",a),l,s==="ops"?r.depth:1/0),p=[...h,...u.slice(-Rn),...m].filter(f=>f!==e);return p.length?[d("h3",{},"within"),
...p.map(f=>this.link(f,`  ${M(t.duration(f))}`))]:[]}},Pn=o=>`${(o/1e6).toFixed(3)} ms`;var Cn=[[["W","S"],"zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],[["A","D"],"pan (also drag, Shift and wheel)"],[["←",
"→"],"previous, next event of the row; without a selection, pan"],[["↑","↓"],"out to the caller, in to the callee; without a selection, scroll"],[["Enter"],
"select an event in the middle of the view"],[["F","0"],"fit the selection, the whole trace"],[["L"],"follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
[["G"],"next, largest gap of the cause that is searched for"],[["R"],"select the visible range (also Shift and drag, or drag on the ruler)"],[["P"],"fold or unf\
old Python"],[["/","N","Shift+N"],"search, next, previous match"],[["Esc"],"clear"]];function kt(o){let e=d("input",{type:"search",placeholder:"Search names   /",
spellcheck:"false",autocomplete:"off","aria-label":"Search names"}),t=d("button",{type:"button","aria-label":"Previous match",disabled:!0},"↑"),n=d("button",{
type:"button","aria-label":"Next match",disabled:!0},"↓"),r=d("output",{"aria-live":"polite"}),s=d("output"),i=d("button",{type:"button",title:"Whole trace (0\
)"},"Whole trace"),c=d("button",{type:"button","aria-label":"Keys",title:"Keys (?)"},"?"),a=d("ul",{class:"legend","aria-label":"Causes of idle time"}),l=d("can\
vas",{class:"map",role:"img","aria-label":"The whole trace; drag to move the view"}),u=d("canvas",{class:"view",tabindex:0,role:"application","aria-label":"Time\
line. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys."}),h=d("canvas",{class:"over","ari\
a-hidden":"true"}),m=d("div",{class:"tip",role:"tooltip",hidden:!0}),p=d("div",{class:"stage"},u,h,m),f=d("aside",{class:"event","aria-label":"Selection","aria-\
live":"polite",hidden:!0}),g=d("dialog",{"aria-label":"Keys"},d("h2",{},"Keys"),d("dl",{},...Cn.flatMap(([T,L])=>[d("dt",{},...T.flatMap(x=>[d("kbd",{},x)," "])),
d("dd",{},L)])),d("form",{method:"dialog"},d("button",{autofocus:!0},"Close"))),w=d("div",{class:"tools",role:"toolbar","aria-label":"Timeline tools"},e,t,n,r,d(
"span",{class:"room"}),s,i,c);return o.replaceChildren(d("h2",{},"Timeline"),a,w,l,p,f,g),{find:e,previous:t,next:n,found:r,span:s,whole:i,help:c,legend:a,map:l,
stage:p,view:u,over:h,tip:m,panel:f,keys:g}}var On=4,Mt=240,Hn=60,In={w:[.2,-.2],s:[-.25,.25],a:[-.2,-.2],d:[.2,.2]};function Et(o){Nn(o),Gn(o),Fn(o);let{find:e,next:t,previous:n,whole:r,help:s,keys:i}=o.
parts;e.addEventListener("input",()=>o.seek(e.value)),t.addEventListener("click",()=>o.next(1)),n.addEventListener("click",()=>o.next(-1)),r.addEventListener("c\
lick",()=>o.time.glide(0,o.time.length)),s.addEventListener("click",()=>i.showModal())}function Un(o,e){let{events:t,picture:n,time:r,relations:s}=o,{tip:i,view:c}=o.
parts,a=n.eventAt(e.offsetX,e.offsetY);if(a!==o.hovered&&(o.hovered=a,o.drawOver()),c.style.cursor=e.offsetX<160?"default":e.offsetY<39?"col-resize":a!==b?"poin\
ter":"grab",i.hidden=a===b,a===b)return;let l=r.span/(n.width-160),u=t.leap(a,t.laneOf(a).beyond,t.start[a]+l)-a-1,h=s.opOf(a);i.replaceChildren(d("b",{},t.label(
a)),d("span",{},M(t.duration(a)))),t.kind(a)==="gpu"&&h!==b&&i.append(d("span",{},t.text(h))),t.kind(a)==="idle"&&t.link[a]!==b&&i.append(d("span",{},`before ${t.
label(t.link[a])}`)),u>0&&t.duration(a)<l*2&&i.append(d("em",{},`${_(u+1)} events in this column`));let{offsetWidth:m,offsetHeight:p}=i,f=e.offsetY+18;i.style.transform=
`translate(${Math.min(e.offsetX+14,n.width-m-6)}px, ${f+p>n.height?e.offsetY-p-10:f}px)`}function Nn(o){let{picture:e,time:t,parts:{view:n,tip:r}}=o,s=new Map,i=null;
n.addEventListener("pointerdown",a=>{n.setPointerCapture(a.pointerId),s.set(a.pointerId,a),t.stop();let l=a.offsetX>=160&&(a.shiftKey||a.offsetY<39);i={x:a.offsetX,
y:a.offsetY,start:t.start,end:t.end,scroll:e.scroll,selects:l,moved:!1}}),n.addEventListener("pointermove",a=>{let l=s.get(a.pointerId);if(!l||!i){Un(o,a);return}
if(s.set(a.pointerId,a),s.size===2){let p=[...s.values()].find(w=>w.pointerId!==a.pointerId),f=Math.abs(l.offsetX-p.offsetX),g=Math.abs(a.offsetX-p.offsetX);f>8&&
g>8&&t.zoom(f/g,e.timeAt((a.offsetX+p.offsetX)/2)),i.moved=!0;return}let u=a.offsetX-i.x,h=a.offsetY-i.y;if(!i.moved&&Math.hypot(u,h)<On)return;if(i.moved=!0,r.
hidden=!0,i.selects){o.selectRange([e.timeAt(Math.max(160,i.x)),e.timeAt(Math.max(160,a.offsetX))]);return}n.style.cursor="grabbing";let m=-u/(e.width-160)*(i.end-
i.start);e.scroll=i.scroll-h,t.move(i.start+m,i.end+m)});let c=a=>{s.delete(a.pointerId),i&&!i.moved&&a.type==="pointerup"&&Dn(o,a),s.size||(i=null)};n.addEventListener(
"pointerup",c),n.addEventListener("pointercancel",c),n.addEventListener("pointerleave",()=>{r.hidden=!0,o.hovered=b,o.drawOver()}),n.addEventListener("dblclick",
a=>{let l=e.eventAt(a.offsetX,a.offsetY);l!==b&&o.fit(l)})}function Dn(o,e){let{picture:t}=o;if(e.offsetX>=160){o.selectRange(null),o.choose(t.eventAt(e.offsetX,
e.offsetY));return}let n=t.rowAt(e.offsetY)?.toggles;n&&o.fold(n)}function Gn(o){let{picture:e,time:t,parts:{view:n,tip:r}}=o;n.addEventListener("wheel",s=>{let i=s.
shiftKey||Math.abs(s.deltaX)>Math.abs(s.deltaY);if(!s.ctrlKey&&!i&&document.activeElement!==n)return;s.preventDefault(),r.hidden=!0,t.stop();let c=s.deltaMode===
WheelEvent.DOM_DELTA_LINE?16:1,a=s.deltaX*c,l=s.deltaY*c;s.offsetX<160?(e.scroll+=l,o.redraw()):i?t.pan((a||l)/(e.width-160)*t.span):t.zoom(Math.exp(Math.max(-Mt,
Math.min(Mt,l))*(s.ctrlKey?.01:.0022)),e.timeAt(s.offsetX))},{passive:!1})}function Fn(o){let{find:e,view:t,keys:n,panel:r}=o.parts;e.addEventListener("keydown",
s=>{s.key==="Enter"&&(o.next(s.shiftKey?-1:1),s.preventDefault()),s.key==="Escape"&&(e.value="",o.seek(""),t.focus()),s.stopPropagation()}),addEventListener("ke\
ydown",s=>{if(s.metaKey||s.ctrlKey||s.altKey||n.open)return;let i=s.target;i!==t&&i!==document.body&&!r.contains(i)||i.tagName==="BUTTON"&&(s.key==="Enter"||s.key===
" ")||i===document.body&&s.key.startsWith("Arrow")||Bn(o,s)&&s.preventDefault()})}function Bn(o,e){let{time:t,picture:n,chosen:r,events:s}=o,i=e.key.length===1?
e.key.toLowerCase():e.key,c=In[i];if(c)return t.glide(t.start+c[0]*t.span,t.end+c[1]*t.span),!0;switch(i){case"?":return o.parts.keys.showModal(),!0;case"/":return o.
parts.find.focus(),o.parts.find.select(),!0;case"n":return o.next(e.shiftKey?-1:1),!0;case"0":return t.glide(0,t.length),!0;case"f":return r!==b&&o.fit(r),!0;case"\
l":return o.followLink(),!0;case"g":return o.nextGap(),!0;case"p":return o.toggle("python"),!0;case"r":return o.selectRange([t.start,t.end]),!0;case"Enter":return r===
b&&o.choose(Wn(o)),!0;case"Escape":return o.selectRange(null),r!==b?o.choose(b):(o.parts.find.value="",o.seek("")),!0;case"ArrowLeft":case"ArrowRight":{let a=i===
"ArrowRight"?1:-1;if(r===b)return t.glide(t.start+.15*a*t.span,t.end+.15*a*t.span),!0;let l=s.laneOf(r),u=r+a;return u>=l.first&&u<l.beyond&&o.choose(u,!0),!0}case"\
ArrowUp":case"ArrowDown":{let a=i==="ArrowDown"?1:-1;if(r===b)return n.scroll+=Hn*a,o.redraw(),!0;let l=o.relations.neighbour(r,a);return l!==b&&o.choose(l,!0),
!0}default:return!1}}function Wn(o){let{events:e,time:t}=o,n=(t.start+t.end)/2;for(let r of e.lanes.filter(s=>s.ready).sort((s,i)=>+(i.group.track.kind==="gpu")-
+(s.group.track.kind==="gpu"))){let s=e.after(r,n);if(s<r.beyond&&e.start[s]<t.end)return s}return b}var zn=4,De=["matmul","comm","copy","memset"],Me=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d");let r=s=>{let i=(s.
offsetX-160)/(e.clientWidth-160)*n.length,c=n.span/2;n.stop(),n.move(i-c,i+c)};e.addEventListener("pointerdown",s=>{e.setPointerCapture(s.pointerId),r(s)}),e.addEventListener(
"pointermove",s=>{s.buttons&&r(s)})}canvas;events;time;context;image=null;ratio=1;resize(e){this.ratio=e,this.canvas.width=this.canvas.clientWidth*e,this.canvas.
height=this.canvas.clientHeight*e,this.image=null}forget(){this.image=null}draw(e){let{context:t,canvas:n,ratio:r,time:s}=this;if(n.width<=160*r)return;this.image??=
this.sketch(e),t.putImageData(this.image,0,0),t.setTransform(r,0,0,r,0,0);let i=n.clientWidth-160,c=n.clientHeight,a=160+s.start/s.length*i,l=160+s.end/s.length*
i;t.fillStyle=e.css.dim,t.font=`11px ${Y}`,t.textBaseline="middle",t.fillText("whole trace",10,c/2),t.fillStyle=`${e.css.paper}b8`,t.fillRect(160,0,a-160,c),t.fillRect(
l,0,160+i-l,c),t.strokeStyle=e.css.accent,t.lineWidth=1.5,t.strokeRect(a+.75,1.25,Math.max(2,l-a-1.5),c-2.5)}sketch(e){let{events:t,canvas:n,ratio:r}=this,{head:s}=t,
{width:i,height:c}=n,a=Math.round(160*r),l=Math.max(1,i-a),u=this.busiestDevice(),h=De.map(()=>new Float32Array(l)),m=s.causes.map(()=>new Float32Array(l));for(let x of t.
lanes)x.group.track.device===u&&(x.group.track.kind==="gpu"&&this.spread(x,l,v=>h[Math.max(0,De.indexOf(s.names[t.name[v]].kind))]),x.group.track.kind==="idle"&&
this.spread(x,l,v=>m[Math.max(0,s.causes.indexOf(s.names[t.name[v]].cause??""))]));let p=new ImageData(i,c),f=new Uint32Array(p.data.buffer),g=Math.round(zn*r),
w=c-2*g,T=De.map(x=>X(be(x,e.dark))),L=s.causes.map(x=>X(Ue(Ne(x),e.paper,.8)));f.fill(e.pixels.paper);for(let x=0;x<l;x++){let v=c-g,y=1,A=($,C)=>{let O=Math.max(
g,v-$*w);for(let R=Math.round(v)-1;R>=Math.round(O);R--)f[R*i+a+x]=C;v=O};h.forEach(($,C)=>{let O=Math.min(y,$[x]);A(O,T[C]),y-=O}),m.forEach(($,C)=>A($[x],L[C]))}
return p}busiestDevice(){let e=new Map;for(let{group:t,first:n,beyond:r}of this.events.lanes){let{device:s,kind:i}=t.track;i==="gpu"&&s!==null&&e.set(s,(e.get(s)??
0)+this.events.sum[r]-this.events.sum[n])}return[...e].sort((t,n)=>n[1]-t[1])[0]?.[0]??null}spread(e,t,n){let{start:r,end:s}=this.events,i=t/this.time.length;for(let c=e.
first;c<e.beyond;c++){let a=r[c]*i,l=s[c]*i,u=n(c);for(let h=Math.floor(a);h<l&&h<t;h++)u[h]+=Math.min(l,h+1)-Math.max(a,h)}}};var Ee=class{constructor(e,t){this.canvas=e;this.picture=t;this.context=e.getContext("2d")}canvas;picture;context;ratio=1;resize(e){this.ratio=e,this.canvas.width=
this.picture.width*e,this.canvas.height=this.picture.height*e}draw(e,t){let{context:n,picture:r,ratio:s}=this;n.setTransform(s,0,0,s,0,0),n.clearRect(0,0,r.width,
r.height),n.save(),n.beginPath(),n.rect(160,0,r.width-160,r.height),n.clip(),e.range&&this.range(e.range,t),n.beginPath(),n.rect(160,39,r.width-160,r.height),n.
clip();for(let i of e.family)this.frame(i,t.css.dim,1.5);for(let[i,c]of e.arrows)this.arrow(i,c,t);e.chosen>=0&&this.frame(e.chosen,t.css.accent,2),e.hovered>=0&&
e.hovered!==e.chosen&&this.frame(e.hovered,t.css.ink,1),n.restore()}range([e,t],n){let{context:r,picture:s}=this,i=s.x(e),c=s.x(t);r.globalAlpha=.12,r.fillStyle=
n.css.accent,r.fillRect(i,0,c-i,s.height),r.globalAlpha=1,r.fillRect(i,0,1,s.height),r.fillRect(c-1,0,1,s.height)}frame(e,t,n){let{context:r,picture:s}=this,i=s.
box(e),{pinned:c}=s.layout;if(!i||i.row.y>=c&&i.y<39+c-8)return;let a=Math.max(156,i.x),l=Math.min(s.width+4,i.right);r.strokeStyle=t,r.lineWidth=n,r.strokeRect(
a-.5,i.y-.5,Math.max(2,l-a),i.height+1)}arrow(e,t,n){let{context:r,picture:s}=this,i=s.box(e),c=s.box(t);if(!i||!c)return;let a=i.y>c.y,l=i.x,u=c.x+1,h=a?1:-1,m=Math.
max(39+s.layout.pinned-4,a?i.y:i.y+i.height),p=a?c.y+c.height:c.y,f=(p-m)*.55||20;for(let[g,w]of[[n.css.paper,4],[n.css.accent,1.75]])r.strokeStyle=r.fillStyle=
g,r.lineWidth=w,r.beginPath(),r.moveTo(l,m),r.bezierCurveTo(l,m+f,u,p-f,u,p+5*h),r.stroke();r.beginPath(),r.arc(l,m,3,0,7),r.fill(),r.beginPath(),r.moveTo(u,p),
r.lineTo(u-4.5,p+8*h),r.lineTo(u+4.5,p+8*h),r.fill()}};var Ge=24,Te=class{constructor(e){this.events=e}events;linkedTo(e,t){let n=[],{link:r}=this.events;for(let s of this.events.lanes)if(s.group.track.kind===e)for(let i=s.
first;i<s.beyond;i++)t(r[i])&&n.push(i);return n}launched(e){return this.linkedTo("gpu",t=>t===e)}backwardOf(e){return this.linkedTo("ops",t=>t===e)}callsOf(e){
let{events:t}=this,{start:n,end:r}=t,s=t.laneOf(e).group.track.thread,i=[];for(let c of t.lanes)if(!(c.group.track.kind!=="api"||c.group.track.thread!==s))for(let a=t.
after(c,n[e]);a<c.beyond&&n[a]<r[e];a++)n[a]>=n[e]&&i.push(a);return i}workOf(e){let t=new Set(this.callsOf(e));return this.linkedTo("gpu",n=>n===e||t.has(n))}callOf(e){
let{events:t}=this,n=t.link[e];return t.kind(e)==="gpu"&&n!==b&&t.kind(n)==="api"?n:b}opOf(e){let{events:t}=this,n=t.kind(e);if(n==="ops")return e;if(n==="api")
return t.link[e];if(n!=="gpu")return b;let r=this.callOf(e);return r!==b?t.link[r]:t.link[e]}arrows(e){let{events:t}=this,n=t.link[e];switch(t.kind(e)){case"gpu":case"\
syncs":return n!==b?[[n,e]]:[];case"idle":return n!==b&&t.link[n]!==b?[[t.link[n],n]]:[];case"api":return this.launched(e).slice(0,Ge).map(r=>[e,r]);case"ops":return[
...n!==b?[[n,e]]:this.backwardOf(e).slice(0,Ge).map(s=>[e,s]),...this.workOf(e).slice(0,Ge).map(s=>[t.link[s],s])];default:return[]}}family(e){let{events:t}=this,
n=t.link[e],r=[n];return n!==b&&r.push(t.link[n]),t.kind(e)==="idle"&&n!==b&&t.link[n]!==b&&r.push(t.link[t.link[n]]),r.filter(s=>s!==b)}around(e,t,n=1/0){let r=[];
for(let s of e?.lanes??[]){if(s.depth>=n||!s.ready)continue;let i=this.events.after(s,t);i<s.beyond&&this.events.start[i]<=t&&r.push(i)}return r}group(e,t){return this.
events.groups.find(n=>n.track.kind===e&&n.track.thread===t)}neighbour(e,t){let{events:n}=this,r=n.laneOf(e),s=r.group.lanes[r.depth+t];if(!s)return b;let i=t<0?
n.after(s,n.start[e]):Kn(n,s,n.start[e]);return i<s.beyond&&n.start[i]<n.end[e]&&n.end[i]>n.start[e]?i:b}};function Kn(o,e,t){let n=e.first,r=e.beyond;for(;n<r;){
let s=n+r>>>1;o.start[s]<t?n=s+1:r=s}return n}var Ae=class{constructor(e){this.events=e}events;matches=null;total=0;wanted=null;seek(e){let t=e.trim().toLowerCase();this.choose(t?n=>n.text.toLowerCase().includes(
t)||n.short.toLowerCase().includes(t):null)}seekNames(e){let t=new Set(e);this.choose((n,r)=>t.has(r))}again(){this.choose(this.wanted)}choose(e){if(this.wanted=
e,this.matches=null,this.total=0,!e)return;let{events:t}=this,n=Uint8Array.from(t.head.names,(i,c)=>e(i,c)?1:0),r=new Uint32Array(t.start.length+1),{name:s}=t;for(let i=0,
c=0;i<s.length;i++)r[i+1]=c+=n[s[i]];n.forEach((i,c)=>{i&&(this.total+=t.counts[c])}),this.matches={names:n,before:r}}next(e,t,n){if(!this.matches||!this.total)
return b;let r=this.step(e,t,t!==b?this.events.start[t]:n);return r!==b?r:this.step(e,b,e>0?-1/0:1/0)}step(e,t,n){let{events:r}=this,{start:s,name:i}=r,{names:c}=this.
matches,a=(u,h)=>(s[u]-s[h]||u-h)*e>0,l=b;for(let u of r.lanes){if(!u.ready)continue;let h=u.first,m=u.beyond;for(;h<m;){let p=h+m>>>1;s[p]<n||e<0&&s[p]===n&&p<
t?h=p+1:m=p}for(let p=e>0?h:h-1;p>=u.first&&p<u.beyond&&!(l!==b&&a(p,l));p+=e)if(c[i[p]]&&(t===b||a(p,t))){l=p;break}}return l}};var Fe=8,Xn=[["On the GPU",["gpu"]],["GPU idle",["idle"]],["API calls",["api"]],["Outermost ops",["ops"]]];function Yn(o,e,t,n){let r=new Map;for(let s of o.lanes){
let{kind:i}=s.group.track;if(!(!s.ready||!n.includes(i)||i==="ops"&&s.depth>0))for(let c=o.after(s,e);c<s.beyond&&o.start[c]<t;c++){let a=Math.min(t,o.end[c])-Math.
max(e,o.start[c]),l=r.get(o.name[c]);l?(l[0]++,l[1]+=a):r.set(o.name[c],[1,a])}}return[...r].map(([s,[i,c]])=>({name:s,count:i,time:c})).sort((s,i)=>i.time-s.time)}
function Tt(o,e,t,n){let r=d("div",{class:"totals"});for(let[s,i]of Xn){let c=Yn(o,e,t,i),a=c.reduce((h,m)=>h+m.time,0);if(!c.length)continue;let l=c.slice(0,Fe).
map(h=>{let m=o.head.names[h.name],p=m.short||m.text;return d("tr",{},d("td",{class:"number"},M(h.time)),d("td",{class:"number"},H(h.time,t-e)),d("td",{class:"n\
umber"},_(h.count)),d("td",{},d("button",{class:"go",title:m.text,onclick:()=>n(p)},p)))}),u=c.length>Fe?d("p",{class:"quiet"},`and ${_(c.length-Fe)} more names`):
"";r.append(d("div",{},d("h3",{},`${s}: ${M(a)}`),d("table",{},d("thead",{},d("tr",{},...["time","share","count","name"].map((h,m)=>d("th",{scope:"col",class:m<
3?"number":""},h)))),d("tbody",{},...l)),u))}return r}var Le=class{constructor(e,t){this.length=e;this.changed=t;this.end=e}length;changed;start=0;end;gliding=0;get span(){return this.end-this.start}move(e,t){let{length:n}=this,
r=Math.min(n*1.02,Math.max(200,t-e)),s=t-e===r?e:(e+t-r)/2;this.start=Math.max(-.01*n,Math.min(s,(1+.01)*n-r)),this.end=this.start+r,this.changed()}pan(e){this.
move(this.start+e,this.end+e)}zoom(e,t=(this.start+this.end)/2){this.move(t-(t-this.start)*e,t+(this.end-t)*e)}stop(){this.gliding++}glide(e,t){let n=++this.gliding,
r=this.start,s=this.end,i=performance.now();if(matchMedia("(prefers-reduced-motion: reduce)").matches){this.move(e,t);return}let c=()=>{if(n!==this.gliding)return;
let a=Math.min(1,(performance.now()-i)/160),l=1-(1-a)**3;this.move(r+(e-r)*l,s+(t-s)*l),a<1&&requestAnimationFrame(c)};c()}};var qn=400,Vn=160,$e=class{constructor(e,t,n,r,s=()=>{}){this.head=e;this.whenDrawn=s;this.events=new xe(e),this.events.readFirst(t,n),this.parts=kt(r),this.time=
new Le(Math.max(1,e.length_ns),()=>this.redraw()),this.picture=new we(this.parts.view,this.events,this.time),this.overlay=new Ee(this.parts.over,this.picture),this.
minimap=new Me(this.parts.map,this.events,this.time),this.relations=new Te(this.events),this.search_=new Ae(this.events),this.details=new ke(this.events,this.relations,
i=>this.choose(i,!0),i=>this.search(i)),this.parts.map.hidden=!e.tracks.some(i=>i.device!==null),this.dress(),this.legend(),this.resize(),this.openAddress(),new ResizeObserver(
()=>{this.picture.has(this.box())||this.resize()}).observe(this.parts.stage),pt(()=>{this.dress(),this.redraw()}),addEventListener("hashchange",()=>this.openAddress()),
Et(this)}head;whenDrawn;events;time;picture;relations;search_;parts;chosen=b;hovered=b;range=null;overlay;minimap;details;look;paint;colours;pending=!1;writing=0;gaps=null;addRest(e){
this.events.readRest(e,0),this.parts.find.value&&this.seek(this.parts.find.value);let{event:t}=Ie(location.hash);t!==void 0&&this.chosen===b&&this.openAddress(),
this.chosen!==b&&this.choose(this.chosen),this.redraw()}replace(e,t,n){let{events:r,chosen:s}=this,i=s===b?null:{kind:r.kind(s),name:r.name[s],start:r.start[s]};
r.renew(e),r.readRest(t,r.readFirst(t,n)),this.picture.place(),this.minimap.forget(),this.gaps=null,this.search_.again(),this.choose(i?r.find(i.kind,i.name,i.start):
b),this.afterSearch()}goTo(e,t){let n=(t-e)*.05;this.parts.stage.scrollIntoView({block:"nearest"}),this.time.glide(e-n,t+n)}search(e){this.parts.find.value=e,this.
seek(e),this.parts.stage.scrollIntoView({block:"nearest"}),this.next(1)}showFinding(e){let t=this.events.particulars.spots.find(n=>n.finding===e);if(t){if(this.
parts.stage.scrollIntoView({block:"center"}),!t.names.length){this.throughGaps(t.cause);return}this.parts.find.value="",this.search_.seekNames(t.names),this.afterSearch(),
this.next(1)}}showInside(e){let{name:t,start_ns:n}=this.events.particulars.inside[e];t===null||n===null||(this.parts.stage.scrollIntoView({block:"center"}),this.
choose(this.events.find("gpu",t,n),!0))}redraw(){this.pending||(this.pending=!0,requestAnimationFrame(()=>{this.pending=!1,this.draw()}))}draw(){this.picture.draw(
this.look,this.paint,this.colours,this.search_.matches),this.minimap.draw(this.look),this.drawOver(),this.parts.span.textContent=M(this.time.span),this.whenDrawn(),
clearTimeout(this.writing),this.writing=setTimeout(()=>this.writeAddress(),qn)}drawOver(){let{chosen:e,hovered:t,range:n,relations:r}=this,s=e!==b;this.overlay.
draw({chosen:e,hovered:t,range:n,family:s?r.family(e):[],arrows:s?this.arrows:[]},this.look)}arrows=[];dress(){this.look=xt(),this.paint=wt(this.head.names,this.
look.dark,this.look.paper),this.minimap.forget(),this.colourMatches()}colourMatches(){let{full:e,faded:t}=this.paint,{matches:n}=this.search_;this.colours=n?e.map(
(r,s)=>n.names[s]?r:t[s]):e}box(){let{width:e,height:t}=this.parts.stage.getBoundingClientRect();return{width:e,height:t,ratio:window.devicePixelRatio||1}}resize(){
let e=this.box(),{ratio:t}=e;this.picture.resize(e),this.limitHeight(),this.overlay.resize(t),this.minimap.resize(t),this.draw()}limitHeight(){this.parts.stage.
style.maxHeight=`${Math.max(Vn,39+this.picture.layout.height+17)}px`}fold(e){e.open=!e.open,this.placed()}placed(){this.picture.place(),this.limitHeight(),this.
redraw()}legend(){for(let[e,t]of this.head.names.entries()){if(t.cause===null||!this.events.counts[e])continue;let{cause:n}=t,r=k("svg",{class:"swatch",viewBox:"\
0 0 1 1","aria-hidden":"true"},k("rect",{class:`part ${n.replaceAll("_","-")} cause`,width:1,height:1}));this.parts.legend.append(d("li",{},d("button",{type:"bu\
tton",class:"plain",title:"Go through these gaps, the largest first",onclick:()=>this.throughGaps(n)},r,t.short||t.text)))}}throughGaps(e){let{events:t}=this,n=this.
head.names.flatMap((s,i)=>s.cause===e?[i]:[]);this.parts.find.value=`idle: ${e.replaceAll("_"," ")}`,this.search_.seekNames(n);let r=[];for(let s of t.lanes)if(s.
group.track.kind==="idle")for(let i=s.first;i<s.beyond;i++)n.includes(t.name[i])&&r.push(i);r.sort((s,i)=>t.duration(i)-t.duration(s)),this.gaps={rows:r,at:-1},
this.afterSearch(),this.nextGap()}nextGap(){let{gaps:e}=this;e?.rows.length&&(e.at=(e.at+1)%e.rows.length,this.choose(e.rows[e.at],!0),this.parts.found.textContent=
`gap ${_(e.at+1)} of ${_(e.rows.length)}, the largest first: G for the next`)}seek(e){this.gaps=null,this.search_.seek(e),this.afterSearch()}afterSearch(){let{found:e,
next:t,previous:n}=this.parts,{matches:r,total:s}=this.search_;e.textContent=r?te(s,"match","matches"):"",t.disabled=n.disabled=!s,this.colourMatches(),this.redraw()}next(e){
let t=this.search_.next(e,this.chosen,e>0?this.time.start:this.time.end);t!==b&&this.choose(t,!0)}choose(e,t=!1){let{panel:n}=this.parts,{events:r}=this;if(this.
chosen=e,this.arrows=e===b?[]:this.relations.arrows(e),n.hidden=e===b&&!this.range,e!==b){let s=this.head.names[r.name[e]],i=this.paint.full[r.name[e]],c=k("svg",
{class:"swatch",viewBox:"0 0 1 1","aria-hidden":"true"},k("rect",{width:1,height:1,fill:vt([i&255,i>>>8&255,i>>>16&255])}));this.show(d("h3",{},c,s.cause!==null?
s.text:r.label(e)),this.details.same(e),this.details.element(e)),t&&this.reveal(e)}else this.range&&this.describeRange();this.redraw()}selectRange(e){this.range=
e&&[Math.max(0,Math.min(...e)),Math.min(this.time.length,Math.max(...e))],this.range&&(this.chosen=b,this.arrows=[]),this.parts.panel.hidden=!this.range&&this.chosen===
b,this.range&&this.describeRange(),this.redraw()}describeRange(){let[e,t]=this.range,n=d("button",{type:"button",onclick:()=>this.time.glide(e,t)},"Zoom here");
this.show(d("h3",{},`Selected ${M(t-e)}`),n,Tt(this.events,e,t,r=>this.search(r)))}show(e,t,n){let r=d("button",{type:"button",class:"close","aria-label":"Close",
onclick:()=>{this.selectRange(null),this.choose(b),this.parts.view.focus({preventScroll:!0})}},"×");this.parts.panel.replaceChildren(d("div",{class:"title"},e,
t,r),n)}reveal(e){let{events:t,time:n}=this,r=t.laneOf(e),s=t.duration(e),i=t.start[e];r.group.open||this.fold(r.group);let c=Math.max(s*8,4e4);s>n.span*.9||s/n.
span<.004?n.glide(Math.max(0,i-c),Math.min(n.length,i+s+c)):(i<n.start||i+s>n.end)&&n.glide(i+s/2-n.span/2,i+s/2+n.span/2),this.scrollTo([e,...this.relations.family(
e)])}scrollTo(e){let{picture:t}=this,{pinned:n}=t.layout,r=t.height-39-n,s=e.map(a=>t.layout.of(this.events.laneOf(a))).filter(a=>a!==void 0&&a.y>=n).map(a=>a.y);
if(!s.length)return;let i=Math.min(...s),c=Math.max(...s)+17;c-i>r&&(i=s[0],c=i+17),i-t.scroll<n?t.scroll=i-n-22:c-t.scroll>n+r&&(t.scroll=Math.min(i-n-22,c-n-r+
6))}toggle(e){let t=this.events.groups.filter(r=>r.track.kind===e),n=!t.some(r=>r.open);for(let r of t)r.open=n;this.placed()}fit(e){let t=this.events.duration(
e)*.15+200;this.time.glide(this.events.start[e]-t,this.events.end[e]+t)}followLink(){let{chosen:e,relations:t,events:n}=this;if(e===b)return;let r=n.link[e],s=r!==
b?r:t.launched(e)[0]??(n.kind(e)==="ops"?t.backwardOf(e)[0]??t.workOf(e)[0]:void 0);s!==void 0&&this.choose(s,!0)}openAddress(){let{at:e,event:t,range:n}=Ie(location.
hash);e&&e[1]>e[0]&&this.time.move(e[0],e[1]),n&&this.selectRange(n),t!==void 0&&t<this.head.events&&this.events.laneOf(t).ready&&this.choose(t),(e||n||t!==void 0)&&
this.parts.stage.scrollIntoView({block:"center"})}writeAddress(){let{time:e,chosen:t,range:n}=this,r=e.start<=0&&e.end>=e.length,s=yt({...r?{}:{at:[e.start,e.end]},
...t!==b?{event:t}:{},...n?{range:n}:{}});if(!(!s&&!/^#(at|event|range)=/.test(location.hash)))try{history.replaceState(null,"",s?`#${s}`:location.href.split("#")[0])}catch{}}};var Lt={begin:performance.now()},Se=o=>{Lt[o]=performance.now()},$t=()=>new Promise(o=>requestAnimationFrame(()=>setTimeout(o)));function St(){let o=[...document.
querySelectorAll("main section[id]")].flatMap(e=>{let t=e.querySelector("h2")?.firstChild?.textContent??e.getAttribute("aria-label");return t&&e.childElementCount?
[d("a",{href:`#${e.id}`},t)]:[]});j("contents").replaceChildren(...o)}async function jn(){let o=await pe("data-timeline");Se("inflated");let{head:e,bytes:t,at:n}=Q(
o),r=null,s=new ge(()=>r);return r=new $e(e,t,n,j("timeline"),()=>s.moved()),Se("drawn"),St(),r}function At(o,e){for(let t of document.querySelectorAll(`[data-${o}\
]`)){let n=e(Number(t.dataset[o]));n&&t.append(d("button",{type:"button",class:"jump",onclick:n},"Show on the timeline"))}}async function Jn(o){o.addRest(await pe(
"data-rest")),At("finding",t=>()=>o.showFinding(t)),At("inside",t=>o.events.particulars.inside[t]?.start_ns==null?null:()=>o.showInside(t)),await $t();let e=await gt(
"data-panels");for(let t of dt){let n=e[t.name];if(!n)continue;let r=d("div",{class:"body"});j("panels").append(d("section",{id:t.name,class:"section"},d("h2",{},
t.title),r)),t.draw(n,r,o)}St(),Se("complete")}document.querySelector("header")?.append(ft());var Zn=new Promise(o=>document.addEventListener("DOMContentLoaded",
()=>o()));jn().then(async o=>{Object.assign(window,{warpline:{marks:Lt,timeline:o}}),await $t(),Se("painted"),await Zn,await Jn(o)});})();
