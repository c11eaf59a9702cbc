"use strict";(()=>{var Lt="http://www.w3.org/2000/svg";function De(r,e,t){for(let[n,s]of Object.entries(e))typeof s=="function"?r.addEventListener(n.replace(/^on/,""),s):s===!0?r.
setAttribute(n,""):s!==void 0&&s!==!1&&r.setAttribute(n,String(s));r.append(...t)}function d(r,e={},...t){let n=document.createElement(r);return De(n,e,t),n}function M(r,e={},...t){
let n=document.createElementNS(Lt,r);return De(n,e,t),n}function j(r){let e=document.getElementById(r);if(!e)throw new Error(`the page has no #${r}`);return e}var At=[[1e9,"s"],[1e6,"ms"],[1e3,"µs"]],$t=[[1e12,"TB"],[1e9,"GB"],[1e6,"MB"],[1e3,"kB"]],_t=.9995,Ge=new Intl.NumberFormat("en",{maximumFractionDigits:0});function Fe(r){
let e=Math.abs(r);return e>=99.95?Ge.format(r):e>=9.995?r.toFixed(1):r.toFixed(2)}function Be(r,e,t){for(let[n,s]of e)if(Math.abs(r)>=n*_t)return`${Fe(r/n)} ${s}`;
return`${r.toFixed(0)} ${t}`}var E=r=>Be(r,At,"ns"),C=r=>Be(r,$t,"B"),H=(r,e)=>e?`${(100*r/e).toFixed(1)} %`:"–",D=r=>`${Fe(r)}×`,S=r=>Ge.format(r),ee=(r,e,t=`${e}\
s`)=>`${S(r)} ${r===1?e:t}`;function St(r,{launches:e,cpu_ns:t,gpu_ns:n,fewer:s}){let o=e*t,i=e*n,c=e===r.launches&&t===r.cpu_ns&&n===r.gpu_ns;return{dispatch_ns:o,work_ns:i,step_ns:c&&r.step_ns!==
null?r.step_ns:Math.max(o,i),graph_ns:c&&r.graph_ns!==null?r.graph_ns:r.graph_launch_ns+i+e*r.graph_gap_ns,fused_ns:Math.max(o/s,i),bound:o>i?"CPU":"GPU",crossover:t?
i/t:null}}function Ke(r,e){let t=d("div",{role:"status","aria-live":"polite"}),n={launches:r.launches,cpu_ns:r.cpu_ns,gpu_ns:r.gpu_ns,fewer:4},s=(l,u,h,m)=>{let p=y=>String(
Math.round(y/h*100)/100),g=n[u],b=d("input",{type:"number",min:m,step:"any",value:p(g)});return b.addEventListener("input",()=>{let y=Number(b.value);b.setAttribute(
"aria-invalid",String(!(Number.isFinite(y)&&y>=m))),!(!Number.isFinite(y)||y<m)&&(n[u]=b.value===p(g)?g:y*h,a())}),[d("label",{},`${l} `,b),b]},o=[s("Launches p\
er step","launches",1,1),s("CPU time per launch, µs","cpu_ns",1e3,0),s("GPU time per launch, µs","gpu_ns",1e3,0),s("Fusion: times fewer launches","fewer",1,1)],
i=o.map(([,l])=>l.value),c=d("button",{type:"button",onclick:()=>o.forEach(([,l],u)=>{l.value=i[u]??"",l.dispatchEvent(new Event("input"))})},"This trace");function a(){
let l=St(r,n),u=(m,p)=>[d("dt",{},m),d("dd",{},p)],h=m=>`${E(m)} (${D(l.step_ns/Math.max(m,1))})`;t.replaceChildren(d("p",{class:"strong"},`Bound by ${l.bound===
"CPU"?"dispatch on the CPU":"the GPU"}: a step takes ${E(l.step_ns)}.`),d("dl",{},...u("to dispatch",E(l.dispatch_ns)),...u("to run",E(l.work_ns)),...l.crossover===
null?[]:u("crossover",`the GPU is the limit below ${S(l.crossover)} launches for the same GPU time`),...u("as one CUDA graph",h(l.graph_ns)),...u(`with ${n.fewer}\
 times fewer launches`,h(l.fused_ns))))}e.append(d("div",{class:"budget"},d("div",{class:"fields"},...o.map(([l])=>l),d("p",{},c)),t)),a()}var te=18,Rt=7.1,Pt=.6;function Ct(r,e){let t=new Map;r.parent.forEach((l,u)=>t.set(l,[...t.get(l)??[],u]));let n=l=>r.total_ns[l]??0;for(let l of t.values())l.
sort((u,h)=>n(h)-n(u));let s=[],o=[];for(let l=e;l>=0;l=r.parent[l]??-1)o.unshift(l);o.forEach((l,u)=>s.push({node:l,depth:u,left:0,width:1}));let i=e>=0?[e]:t.
get(-1)??[],c=i.reduce((l,u)=>l+n(u),0)||1,a=(l,u,h)=>{for(let m of l){let p=n(m)/c;m!==e&&s.push({node:m,depth:u,left:h,width:p}),a(t.get(m)??[],u+1,h),h+=p}};
return a(i,Math.max(o.length-1,0),0),s}function We(r,e){let t=d("select",{"aria-label":"Flame graph"},...r.flames.map((g,b)=>d("option",{value:b},`${g.name}, ${E(
Ae(g))}`))),n=d("input",{type:"search",placeholder:"Highlight","aria-label":"Highlight frames"}),s=d("button",{type:"button"},"Whole graph"),o=d("p",{class:"qui\
et",role:"status"}),i=M("svg",{class:"flame",role:"group","aria-label":"Flame graph. Arrow keys move, Enter zooms, Escape zooms out."});e.append(d("p",{class:"t\
ools"},t," ",n," ",s),i,o,d("p",{class:"quiet"},"Width is time, a caller above what it calls. Each moment of a thread belongs to its innermost frame, op or call\
, so nothing is counted twice; GPU time is the sum of durations, below the stack that launched it. Frames under 0.02 % are left out."));let c=-1,a=-1;function l(){
let g=r.flames[Number(t.value)];if(!g)return;let b=Math.max(i.clientWidth||e.clientWidth||1e3,300),y=n.value.toLowerCase(),f=Ct(g,c).filter(x=>x.width*b>=Pt);new Set(
f.map(x=>x.node)).has(a)||(a=f[0]?.node??-1);let w=Math.max(0,...f.map(x=>x.depth));i.setAttribute("viewBox",`0 0 ${b} ${(w+1)*te}`);let L=i.contains(document.activeElement);
i.replaceChildren(...f.map(x=>u(g,x,b,y))),L&&m(),s.disabled=c<0,o.textContent=c<0?`${g.name}: ${E(Ae(g))}`:ae(g,c)}function u(g,b,y,f){let k=g.frames[g.frame[b.
node]??0]??"",w=b.left*y,L=b.width*y,x=Math.floor((L-6)/Rt),A=Ht(k),$=x<3?"":A.length<=x?A:`${A.slice(0,x-1)}…`,P=f!==""&&k.toLowerCase().includes(f),O=()=>{c=
b.node,a=b.node,l()},R=M("g",{class:`frame ${It(k)}${P?" match":f?" faded":""}`,"data-node":b.node,tabindex:b.node===a?0:-1,role:"button","aria-label":ae(g,b.node),
onclick:O,onfocus:()=>{a=b.node,o.textContent=ae(g,b.node)}},M("title",{},ae(g,b.node)),M("rect",{x:w,y:b.depth*te,width:Math.max(L-.5,.3),height:te-1}),...$?[M(
"text",{x:w+3,y:b.depth*te+te/2},$)]:[]);return R.addEventListener("keydown",I=>{h(g,b,I,O)}),R}function h(g,b,y,f){let k=Ot(g,b.node,y.key);if(y.key==="Enter"||
y.key===" ")f();else if(y.key==="Escape")c=-1,l();else if(k!==null)k>=0&&i.querySelector(`[data-node="${k}"]`)&&(a=k,l());else return;y.preventDefault()}function m(){
i.querySelector(`[data-node="${a}"]`)?.focus()}let p=()=>{c=-1,l()};t.addEventListener("change",p),s.addEventListener("click",p),n.addEventListener("input",l),new ResizeObserver(
l).observe(e),l()}var Ae=r=>r.parent.reduce((e,t,n)=>e+(t<0?r.total_ns[n]??0:0),0);function ae(r,e){let t=r.total_ns[e]??0;return`${r.frames[r.frame[e]??0]??""}\
: ${E(t)}, ${H(t,Ae(r))}`}function Ot(r,e,t){let n=c=>r.total_ns[c]??0,s=r.parent[e]??-1,o=c=>r.parent.flatMap((a,l)=>a===c?[l]:[]).sort((a,l)=>n(l)-n(a));if(t===
"ArrowUp")return s;if(t==="ArrowDown")return o(e)[0]??-1;if(t!=="ArrowLeft"&&t!=="ArrowRight")return null;let i=o(s);return i[i.indexOf(e)+(t==="ArrowRight"?1:-1)]??
-1}var Ht=r=>r.replace(/^.*\/(?=[^/]*\(\d+\): )/,"").replace(/^void /,"");function It(r){return/\(\d+\): |^<built-in|^nn\.Module/.test(r)?"python":/^(cuda|cu|hip)[A-Z]/.
test(r)?"api":/^(aten|autograd|torch|c10d|nccl|prims|inductor)::|Backward\d*$/.test(r)?"op":/[<(]|kernel|gemm|^Mem(cpy|set)/i.test(r)?"kernel":"range"}var J=1e3,le=220,W=76,ce=12,Nt=12,ze=26;function Ut(r,e){let t=0,n=r.length;for(;t<n;){let s=t+n>>1;(r[s]??0)<=e?t=s+1:n=s}return Math.max(t-1,0)}function Xe(r,e,t){
for(let n of r.curves)e.append(...Dt(n,t))}function Dt(r,e){let t=r.times_ns[0]??0,n=Math.max(r.times_ns.at(-1)??0,t+1),s=Math.max(1,...r.allocated_bytes,...r.reserved_bytes),
o=r.allocated_bytes.indexOf(Math.max(...r.allocated_bytes)),i=f=>W+(f-t)/(n-t)*(J-W-ce),c=f=>le-ze-f/s*(le-Nt-ze),a=f=>f.map((k,w)=>`${w?`H${i(r.times_ns[w]??0).
toFixed(1)}V`:`M${i(t)} `}${c(k).toFixed(1)}`).join("")+`H${J-ce}`,l=d("p",{class:"quiet",role:"status"}),u=f=>{let k=r.reserved_bytes[f];l.textContent=`${E(r.times_ns[f]??
0)}: ${C(r.allocated_bytes[f]??0)} allocated${k===void 0?"":`, ${C(k)} reserved`}`},h=f=>{let k=y.getBoundingClientRect(),w=(f.clientX-k.left)/k.width*J;return Ut(
r.times_ns,t+(w-W)/(J-W-ce)*(n-t))},m=f=>{let k=r.times_ns[f]??0,w=(n-t)/50;e.goTo(k-w,k+w)},p=o,g=M("circle",{r:4,class:"mark",cx:0,cy:0}),b=f=>{p=f,g.setAttribute(
"cx",String(i(r.times_ns[f]??0))),g.setAttribute("cy",String(c(r.allocated_bytes[f]??0))),u(f)},y=M("svg",{viewBox:`0 0 ${J} ${le}`,class:"chart memory",role:"s\
lider",tabindex:0,"aria-label":`Memory of ${r.title}, peak ${C(r.allocated_bytes[o]??0)}`,"aria-valuemin":0,"aria-valuemax":r.times_ns.length-1,"aria-valuenow":o,
onmousemove:f=>b(h(f)),onclick:f=>m(h(f)),onkeydown:f=>{let{key:k}=f,w=k==="ArrowRight"?1:k==="ArrowLeft"?-1:0;w?(f.preventDefault(),b(Math.min(Math.max(p+w,0),
r.times_ns.length-1)),y.setAttribute("aria-valuenow",String(p)),y.setAttribute("aria-valuetext",l.textContent??"")):k==="Enter"&&m(p)}});for(let f of[0,.5,1])y.
append(M("path",{class:"grid",d:`M${W} ${c(f*s)}H${J-ce}`}),M("text",{x:W-8,y:c(f*s),class:"end dim"},C(f*s)));for(let f of[0,.25,.5,.75,1])y.append(M("text",{x:i(
t+f*(n-t)),y:le-8,class:f===1?"end dim":"middle dim"},E(t+f*(n-t))));return r.reserved_bytes.length&&y.append(M("path",{class:"reserved",d:a(r.reserved_bytes)})),
y.append(M("path",{class:"area",d:`${a(r.allocated_bytes)}V${c(0)}H${W}z`}),M("path",{class:"allocated",d:a(r.allocated_bytes)}),g),b(o),[d("h3",{},r.title,d("s\
mall",{},`peak ${C(r.allocated_bytes[o]??0)} allocated`)),y,l]}function Ye(r,e){e.append(d("dl",{class:"numbers"},...r.entries.flatMap(t=>[d("dt",{},t.number),d("dd",{},...t.value?[d("b",{},t.value)," "]:[],t.how)])))}var Gt=25,Ft=(r,e)=>{if(r===null||r==="")return"–";if(typeof r=="string")return r;switch(e){case"ns":return E(r);case"bytes":return C(r);case"bytes_per_second":
return`${C(r)}/s`;case"share":return H(r,1);case"gain":return D(r);case"count":return S(r);default:return String(Math.round(r*100)/100)}};function Bt(r,e){let t=e.
falling?-1:1;return[...r].sort((n,s)=>{let o=n[e.column]??null,i=s[e.column]??null;return o===null||i===null?+(o===null)-+(i===null):typeof o=="number"&&typeof i==
"number"?t*(o-i):t*String(o).localeCompare(String(i),"en")})}function Kt(r,e){let t=e.toLowerCase().split(/\s+/).filter(Boolean);return r.filter(n=>{let s=n.filter(
o=>typeof o=="string").join(" ").toLowerCase();return t.every(o=>s.includes(o))})}function Wt(r,e,t){let n=e.flatMap((a,l)=>a.sums?[l]:[]),s=new Map;for(let a of r){
let l=String(a[t]??"–"),u=s.get(l)??[0,...n.map(()=>0)];u[0]=(u[0]??0)+1,n.forEach((h,m)=>{u[m+1]=(u[m+1]??0)+Number(a[h]??0)}),s.set(l,u)}let o=[t,...n].flatMap(
a=>e[a]??[]),[i,...c]=o;return{columns:[...i?[i]:[],{title:"rows",unit:"count",group:!1,sums:!0},...c],rows:[...s].map(([a,l])=>[a,...l])}}var Ve=[],je=r=>Ve.some(
e=>e(r));function Je(r,e,t){for(let n of r.tables)e.append(zt(n,t))}function zt(r,e){let t=null,n=null,s=!1,o=`table-${r.title.toLowerCase().replace(/\W+/g,"-")}`,
i=d("input",{type:"search",placeholder:"Filter","aria-label":`Filter ${r.title.toLowerCase()}`,oninput:()=>y()}),c=r.columns.flatMap((w,L)=>w.group?[d("option",
{value:L},w.title)]:[]),a=d("select",{"aria-label":`Group ${r.title.toLowerCase()} by`,onchange:()=>{n=a.value===""?null:Number(a.value),t=null,y()}},d("option",
{value:""},"not grouped"),...c),l=d("span",{class:"quiet",role:"status"}),u=d("thead"),h=d("tbody"),m=d("button",{type:"button",onclick:()=>{s=!0,y()}},"Show al\
l"),p=d("caption",{class:"sr"},r.title),g=d("div",{class:"table-view",id:o},d("h3",{},r.title),d("p",{class:"tools"},i," ",...c.length?[d("label",{},"group by ",
a)," "]:[],l),d("div",{class:"wide"},d("table",{},p,u,h)),m),b=(w,L)=>{t={column:w,falling:t?.column===w?!t.falling:!L},y(w)};function y(w){let L=Kt(r.rows,i.value),
x=n===null?{columns:[...r.columns],rows:L}:Wt(L,r.columns,n),A=Bt(x.rows,t??qe(x.columns)),$=s||n!==null?A:A.slice(0,Gt),P=t??qe(x.columns);u.replaceChildren(d(
"tr",{},...x.columns.map((R,I)=>f(R,I,P)))),h.replaceChildren(...$.map(R=>d("tr",{},...x.columns.map((I,K)=>k(R,I,K))))),w!==void 0&&u.querySelectorAll("button")[w]?.
focus();let O=r.left_out?`; ${ee(r.left_out,"shorter one")} not on this page`:"";l.textContent=`${ee($.length,n===null?"row":"group")} of ${S(n===null?r.rows.length:
A.length)}${O}`,m.hidden=$.length===A.length}function f(w,L,x){let A=w.unit==="text",$=x.column===L,P=d("button",{type:"button",class:"sort",onclick:()=>b(L,A)},
w.title,d("span",{"aria-hidden":"true"},$?x.falling?" ▾":" ▴":""));return d("th",{scope:"col",class:A?"":"number","aria-sort":$?x.falling?"descending":"asce\
nding":"none"},P)}function k(w,L,x){let A=Ft(w[x]??null,L.unit);if(x>0)return d("td",{class:L.unit==="text"?"":"number"},A);let $=n===null?()=>e.search(A):()=>{
i.value=A,n=null,a.value="",y()};return d("th",{scope:"row",class:"name"},d("button",{type:"button",class:"link",title:n===null?`${A}
Show it on the timeline`:"Show its rows",onclick:$},A))}return Ve.push(w=>r.rows.some(L=>L[0]===w)?(i.value=w,n=null,a.value="",y(),g.scrollIntoView({block:"nea\
rest"}),!0):!1),y(),g}function qe(r){let e=r.findIndex(t=>t.unit==="ns");return{column:Math.max(e,0),falling:e>=0}}var Z=1e3,G=520,ne=74,de=24,Ze=20,ue=46;function Xt(r){let e=[...r.dots.map(o=>o.intensity),...r.compute.map(o=>o.value/r.memory.value)].map(Math.log10),t=[...r.
dots.map(o=>o.flops_per_second),...r.compute.map(o=>o.value)].map(Math.log10),n=o=>Math.floor(Math.min(...o)),s=o=>Math.ceil(Math.max(...o)+.05);return{x:[n(e),
s(e)],y:[n(t),s(t)]}}function tt(r){let[e,t]=r>=1e12?[1e12,"T"]:r>=1e9?[1e9,"G"]:[1e6,"M"];return`${(r/e).toPrecision(3)} ${t}FLOP/s`}function nt(r,e,t){let{x:[
n,s],y:[o,i]}=Xt(r),c=x=>ne+(Math.log10(x)-n)/(s-n)*(Z-ne-de),a=x=>G-ue-(Math.log10(x)-o)/(i-o)*(G-Ze-ue),l=M("svg",{viewBox:`0 0 ${Z} ${G}`,class:"chart roofli\
ne",role:"group","aria-label":`Roofline of ${r.device}, ${r.dots.length} ops. Arrow keys move between them.`});for(let x=n;x<=s;x++){let A=c(10**x);l.append(M("\
path",{class:"grid",d:`M${A} ${Ze}V${G-ue}`}),M("text",{x:A,y:G-ue+16,class:"middle dim"},Qe(x)))}for(let x=o;x<=i;x++){let A=a(10**x);l.append(M("path",{class:"\
grid",d:`M${ne} ${A}H${Z-de}`}),M("text",{x:ne-8,y:A,class:"end dim"},Qe(x-12)))}l.append(M("text",{x:(ne+Z)/2,y:G-8,class:"middle dim"},"arithmetic intensity (\
FLOP per byte)"),M("text",{x:16,y:G/2,class:"middle dim",transform:`rotate(-90 16 ${G/2})`},"TFLOP/s"));let u=r.memory.value,h=Math.max(...r.compute.map(x=>x.value),
10**o),m=Math.max(10**n,10**o/u),p=[c(m),a(m*u)],g=[c(h/u),a(h)],b=Math.atan2(g[1]-p[1],g[0]-p[0])*180/Math.PI,[y,f]=[.72*p[0]+.28*g[0],.72*p[1]+.28*g[1]],k=[M(
"text",{x:y,y:f-11,class:"middle roof-name",transform:`rotate(${b} ${y} ${f})`},`memory ${C(u)}/s, ${r.memory.source}`)];l.append(M("path",{class:"roof",d:`M${p.
join(" ")}L${g.join(" ")}`}));let w=-1/0;for(let x of r.compute){let A=a(x.value);l.append(M("path",{class:"roof",d:`M${c(x.value/u)} ${A}H${Z-de}`})),A-w>=14&&
(k.push(M("text",{x:Z-de-4,y:A-9,class:"end roof-name"},`${x.name} ${tt(x.value)}, ${x.source}`)),w=A)}let L=d("p",{class:"quiet",role:"status"},`${r.device}. T\
he drawn ops take ${H(r.drawn_ns,r.total_ns)} of the GPU time; the larger the dot, the longer. Click one, or use the arrow keys.`);l.append(...Yt(r,c,a,L,t),...k),
e.append(l,qt(),L)}var Qe=r=>r>=-4&&r<=4?String(10**r):`1e${r}`;function et(r,e){let t=r.roof_pct===null?"":`, ${r.roof_pct.toFixed(1)} % of its roof`;return`${r.
name} ${r.shapes}: ${E(r.time_ns)} in ${S(r.calls)} calls (${H(r.time_ns,e)} of GPU time), ${tt(r.flops_per_second)}${t}${r.bound?`, ${r.bound}-bound`:""}`}function Yt(r,e,t,n,s){
let o=Math.max(...r.dots.map(a=>a.time_ns)),i=[],c=a=>{i.forEach((u,h)=>{u.setAttribute("tabindex",h===a?"0":"-1"),u.classList.toggle("selected",h===a)});let l=r.
dots[a];l&&(n.textContent=et(l,r.total_ns))};return r.dots.forEach((a,l)=>{let u=()=>{c(l),je(a.name)||s.search(a.name)},h=g=>{let{key:b}=g,y=b==="ArrowRight"||
b==="ArrowDown"?1:b==="ArrowLeft"||b==="ArrowUp"?-1:0;if(y){g.preventDefault();let f=(l+y+i.length)%i.length;c(f),i[f]?.focus()}else(b==="Enter"||b===" ")&&(g.preventDefault(),
u())},m=et(a,r.total_ns),p=3.5+13*Math.sqrt(a.time_ns/o);i.push(M("circle",{cx:e(a.intensity),cy:t(a.flops_per_second),r:p,class:`dot ${a.bound||"unknown-bound"}`,
tabindex:l===0?0:-1,role:"button","aria-label":m,onclick:u,onkeydown:h,onfocus:()=>c(l)},M("title",{},m)))}),i}function qt(){let r=e=>d("li",{},M("svg",{class:"\
swatch",viewBox:"0 0 10 10","aria-hidden":"true"},M("circle",{cx:5,cy:5,r:5,class:`dot ${e}`})),`${e}-bound`);return d("ul",{class:"legend"},...["compute","memo\
ry","latency"].map(r))}var re=120,rt=1e3,Vt=48;function st(r,e,t){let n=r.lengths_ns.length,s=Math.max(1,...r.lengths_ns),o=Math.min(Vt,rt/n),i=Math.max(.5,o*.82),c=M("svg",{viewBox:`\
0 0 ${rt} ${re}`,class:"steps",role:"img","aria-label":`${n} steps, the longest ${E(s)}`});r.lengths_ns.forEach((a,l)=>{let u=r.busy_ns[l]??0,h=r.starts_ns[l]??
0,m=l*o,p=a/s*re,g=u/s*re,b=M("g",{class:"step-bar",onclick:()=>t.goTo(h,h+a)},M("title",{},`step ${l}: ${E(a)}, GPU busy ${H(u,a)}`),M("rect",{x:m,width:i,y:re-
p,height:p,class:"part idle"}),M("rect",{x:m,width:i,y:re-g,height:g,class:"part compute"}));c.append(b)}),e.append(c,d("p",{class:"quiet"},"Height: length of t\
he step; dark: GPU busy. Click a step to see it on the timeline."))}var ot=1e3,N=70,jt=190,z=22,$e=12;function Jt(r,e){return r.replayed.find(t=>t.fixes.length===e.size&&t.fixes.every(n=>e.has(n)))}function Zt(r,e){let t=[...e].
sort((n,s)=>n-s).map(n=>`--fix ${r.fixes[n]?.name??""}`);return["warpline whatif",Qt(r.file),...t].join(" ")}var Qt=r=>/^[\w./:@%+=-]+$/.test(r)?r:`'${r.replaceAll(
"'",`'"'"'`)}'`;function it(r,e){let t=new Set,n=[],s=d("div",{class:"whatif-answer",role:"status","aria-live":"polite"}),o=()=>{n.forEach((l,u)=>{l.checked=t.has(
u)}),s.replaceChildren(...en(r,t))},i=l=>{t.clear();for(let u of l)t.add(u);o()},c=d("fieldset",{class:"fixes"},d("legend",{},"Fixes"));r.fixes.forEach((l,u)=>{
let h=d("input",{type:"checkbox",onchange:()=>{t.delete(u)||t.add(u),o()}});n.push(h);let m=r.planned.indexOf(u),p=[l.effort,l.confidence?`${l.confidence} confi\
dence`:"no finding alone",m>=0?`plan ${m+1}`:""].filter(Boolean);c.append(d("label",{title:l.claim},h,d("b",{},l.words),d("span",{class:"quiet"},` ${p.join(", ")}`)))});
let a=d("p",{class:"buttons"},d("button",{type:"button",onclick:()=>i([])},"None")," ",...r.planned.length?[d("button",{type:"button",onclick:()=>i(r.planned)},
"The plan")]:[]);e.append(d("div",{class:"whatif"},d("div",{},c,a),s)),i(r.planned.slice(0,1))}function en(r,e){if(!e.size)return[_e(`The step takes ${E(r.step_ns)}\
 without a profiler. Tick a fix.`),Se(r)];let t=Jt(r,e);if(!t)return[_e("This combination was not replayed for this page."),d("p",{class:"quiet"},"Fixes overlap\
, so their gains do not multiply. This command replays it:"),d("pre",{},Zt(r,e)),Se(r)];let{low:n,expected:s,high:o}=t.step_ns,i=r.step_ns/s;return[_e(`${E(r.step_ns)}\
 → ${E(s)}, ${D(i)}`),d("p",{class:"quiet"},`The 80 % range of the step is ${E(n)} to ${E(o)} (${D(r.step_ns/o)} to ${D(r.step_ns/n)}). `+(r.step_ns/o<1?"It i\
ncludes no gain.":"Replayed on this trace's graph, without a profiler.")),Se(r,t)]}var _e=r=>d("p",{class:"strong"},r);function Se(r,e){let t=Math.max(r.step_ns,
e?.step_ns.high??0),n=(ot-N-jt)/t,s=M("svg",{viewBox:`0 0 ${ot} ${2*z+2*$e}`,class:"chart","aria-hidden":"true"}),o=(i,c,a,l)=>{let u=i*(z+$e)+2;s.append(M("tex\
t",{x:N-10,y:u+z/2,class:"end"},c),M("rect",{x:N,y:u,width:a*n,height:z,class:l}))};if(o(0,"now",r.step_ns,"before"),s.append(M("text",{x:N+r.step_ns*n+8,y:z/2+
2},E(r.step_ns))),e){let{low:i,expected:c,high:a}=e.step_ns,l=z+$e+2+z/2;o(1,"after",c,"after"),s.append(M("path",{class:"whisker",d:`M${N+i*n} ${l}H${N+a*n}M${N+
i*n} ${l-6}v12M${N+a*n} ${l-6}v12`})),s.append(M("text",{x:N+a*n+8,y:l},E(c)))}return s}var F=(r,e,t)=>({name:r,title:e,draw:t}),at=[F("whatif","What if",it),F("steps","Steps",st),F("tables","Tables",Je),F("roofline","Roofline",nt),F("flame","Flame\
 graph",We),F("budget","Dispatch budget",Ke),F("memory","Memory",Xe),F("numbers","How each number was made",Ye)];var lt="warpline-theme",ct=()=>matchMedia("(prefers-color-scheme: dark)"),dt=[];function tn(){try{let r=localStorage.getItem(lt);return r==="light"||r==="dark"?
r:null}catch{return null}}var he=()=>(document.documentElement.dataset.theme??(ct().matches?"dark":"light"))==="dark";function ut(r){dt.push(r)}function ht(){let r=tn();
r&&(document.documentElement.dataset.theme=r);let e=d("button",{type:"button",class:"theme"}),t=()=>{let s=he()?"Light":"Dark";e.textContent=s,e.setAttribute("a\
ria-label",`${s} colours`)},n=()=>{t();for(let s of dt)s()};return e.addEventListener("click",()=>{let s=he()?"light":"dark";document.documentElement.dataset.theme=
s;try{localStorage.setItem(lt,s)}catch{}n()}),ct().addEventListener("change",n),t(),e}var mt=r=>{let e=/^(-?\d+)-(\d+)$/.exec(r??"");return e?[Number(e[1]),Number(e[2])]:void 0};function Re(r){let e=new URLSearchParams(r.replace(/^#/,"")),t=mt(e.
get("at")),n=mt(e.get("range")),s=e.get("event");return{...t?{at:t}:{},...n?{range:n}:{},...s!==null&&/^\d+$/.test(s)?{event:Number(s)}:{}}}function pt({at:r,event:e,
range:t}){let n=s=>s.map(o=>Math.max(0,Math.round(o))).join("-");return[r?`at=${n(r)}`:"",e!==void 0?`event=${e}`:"",t?`range=${n(t)}`:""].filter(Boolean).join(
"&")}var nn=["gpu","idle","syncs"],rn=["api","ops","ranges","python"],sn={api:"CUDA API",ops:"ops",ranges:"ranges",python:"Python"},se=class{rows=[];pinned;height;rowOf=new Map;y=0;constructor(e,t){
let{groups:n,head:s}=e,o=new Map;for(let c of n)o.set(c.track.thread,[...o.get(c.track.thread)??[],c]);for(let c of on(n.map(a=>a.track.device))){this.add(22,{title:`\
GPU ${c}`});for(let a of nn)for(let l of n)l.track.device===c&&l.track.kind===a&&this.addGroup(l,l.track.label)}let i=this.y;for(let c of an(n)){this.add(22,{title:s.
threads[c]??"thread"});for(let a of rn)for(let l of o.get(c)??[])l.track.kind===a&&this.addGroup(l,sn[a]??a)}this.height=this.y,this.pinned=i>t*.5?0:i}of(e){return this.
rowOf.get(e)}add(e,t){let n={y:this.y,height:e,...t};this.rows.push(n),n.lane&&this.rowOf.set(n.lane,n),this.y+=e}addGroup(e,t){let n=e.lanes,s=this.y;if(!n.length)
return;let o=n.length>1||e.track.kind==="python";for(let i of e.open?n:n.slice(0,14)){let c=i.depth===0;this.add(e.open?17:3,{lane:i,...c?{label:t}:{},...c&&o?{
toggles:e}:{},...e.open?{}:{thin:!0}})}this.y=Math.max(this.y,s+17)+5}},on=r=>[...new Set(r.filter(e=>e!==null))].sort((e,t)=>e-t);function an(r){let e=new Map;
for(let{track:n}of r){if(n.thread===null)continue;let s=e.get(n.thread)??{};s[n.kind]=(s[n.kind]??0)+n.lanes.reduce((o,i)=>o+i,0),e.set(n.thread,s)}return[...e].
map(([n,{api:s=0,ops:o=0,ranges:i=0,python:c=0}])=>({thread:n,main:+(s>0&&i+c>0),api:s,ops:o})).sort((n,s)=>s.main-n.main||s.api-n.api||s.ops-n.ops||n.thread-s.
thread).map(({thread:n})=>n)}var ln={matmul:[.56,.115,257],attention:[.5,.12,287],norm:[.66,.09,215],kernel:[.74,.06,240],copy:[.6,.1,308],memset:[.8,.02,250],comm:[.6,.15,350],graph:[.62,.08,
180],launch:[.8,.045,165],wait:[.66,.13,38],api_copy:[.74,.075,308],allocate:[.62,.09,20],api:[.83,.015,200],op:[.81,.05,255],range:[.88,.04,130],python:[.88,.022,
85],module:[.83,.055,90],sync:[.72,.1,45],idle:[.84,.01,250]},cn={dispatch:"e69f00",sync:"d55e00",transfer:"56b4e9",input:"009e73",memory:"f0e442",comm:"cc79a7",
cold_start:"8c5a3c",launch_latency:"9aa0a6",dependency:"0072b2",profiler:"5f6368",unknown:"c9cdd2"},dn=new Set(["op","range","python","module"]),un=new Set(["la\
unch","api","memset"]),hn=new Set(["matmul","attention"]),mn=new Set(["launch","wait","api_copy","allocate","api","op","range","python","module"]);function pn([
r,e,t]){let n=e*Math.cos(t*Math.PI/180),s=e*Math.sin(t*Math.PI/180),o=(r+.3963377774*n+.2158037573*s)**3,i=(r-.1055613458*n-.0638541728*s)**3,c=(r-.0894841775*n-
1.291485548*s)**3,a=l=>Math.round(255*Math.min(1,Math.max(0,l<=.0031308?12.92*l:1.055*l**(1/2.4)-.055)));return[a(4.0767416621*o-3.3077115913*i+.2309699292*c),a(
-1.2684380046*o+2.6097574011*i-.3413193965*c),a(-.0041960863*o-.7034186147*i+1.707614701*c)]}var pe=r=>{let e=r.replace("#","");return[0,2,4].map(t=>parseInt(e.
slice(t,t+2),16))},ft=r=>`rgb(${r.join(" ")})`,X=r=>(255<<24|r[2]<<16|r[1]<<8|r[0])>>>0,Pe=(r,e,t)=>r.map((n,s)=>Math.round(n*t+e[s]*(1-t))),Ce=r=>pe(cn[r]??"c9\
cdd2");function me(r,e,t=.5){let[n,s,o]=ln[r],i=n;return e&&(i=dn.has(r)?1.22-i:un.has(r)?i-.3:hn.has(r)?i+.05:i-.04),pn([i+(t-.5)*.055,s,o+(t*7%1-.5)*(mn.has(r)?
46:16)])}function fn(r){let e=2166136261;for(let t=0;t<r.length;t++)e=Math.imul(e^r.charCodeAt(t),16777619);return(e>>>8)%997/997}var gn=r=>.299*r[0]+.587*r[1]+
.114*r[2]>135;function gt(r,e,t){let n=new Uint32Array(r.length),s=new Uint32Array(r.length),o=new Uint8Array(r.length);return r.forEach((i,c)=>{let a=i.cause!==
null?Ce(i.cause):null,l=a??me(i.kind,e,fn(i.short||i.text));n[c]=X(l),s[c]=X(Pe(l,t,.24)),o[c]=gn(a??me(i.kind,e))?1:0}),{full:n,faded:s,darkInk:o}}var Y='Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", sans-serif';function yt(){let r=getComputedStyle(document.documentElement),e=s=>r.getPropertyValue(
`--${s}`).trim(),t={paper:e("paper"),ink:e("ink"),dim:e("dim"),rule:e("rule"),grid:e("grid"),band:e("band"),accent:e("accent")},n=s=>X(pe(s));return{dark:he(),paper:pe(
t.paper),css:t,pixels:{paper:n(t.paper),grid:n(t.grid),rule:n(t.rule)}}}var oe=class{constructor(e,t){this.events=e;this.width=t;this.line=new Uint32Array(t)}events;width;line;draw(e,t,n,s,o,i){let{events:c,line:a,width:l}=this,{start:u,
end:h,sum:m,name:p}=c,{beyond:g}=e,b=t+l/n,y=e.group.track.kind==="idle",f=c.after(e,t),k=!1;for(;f<g&&u[f]<b;){k=!0;let w=(u[f]-t)*n,L=(h[f]-t)*n;if(L-w>=1.5){
let R=Math.max(0,w),I=Math.min(l,L-w>4?L-1:L),K=s[p[f]],q=Math.ceil(R),V=Math.floor(I);V>q&&a.fill(K,q,V),q>R&&q<=l&&this.blend(q-1,K,q-R),I>V&&V<l&&this.blend(
V,K,I-V),i&&i(f,R,I),f++;continue}let x=Math.max(0,Math.floor(w)),A=t+(x+1)/n,$=c.leap(f,g,A);$-1>f&&(h[$-1]-u[$-1])*n>=1.5&&$--;let P=Math.max(0,h[$-1]-A)*n,O=(m[$]-
m[f])*n-P;if(x<l){let R=o!==null&&o.before[$]>o.before[f],I=$-f===1?f:R?yn(o,f,$):c.longest(f,$),K=O>=1||R?1:y?Math.max(.08,O):Math.max(.25,Math.sqrt(Math.max(0,
O)));this.blend(x,s[p[I]],K),P>.05&&x+1<l&&this.blend(x+1,s[p[$-1]],Math.min(1,P))}f=$}return k}blend(e,t,n){let s=this.line[e],o=1-n,i=(t>>>16&255)*n+(s>>>16&255)*
o,c=(t>>>8&255)*n+(s>>>8&255)*o,a=(t&255)*n+(s&255)*o;this.line[e]=(255<<24|i<<16|c<<8|a)>>>0}};function yn(r,e,t){let n=r.before[e],s=e,o=t-1;for(;s<o;){let i=s+
o>>>1;r.before[i+1]>n?o=i:s=i+1}return s}var bn=26,vn=110,ge=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d",{alpha:!1}),this.layout=new se(t,0),this.raster=
new oe(t,1),this.image=new ImageData(1,1),this.pixels=this.ground=new Uint32Array(1)}canvas;events;time;layout;scroll=0;width=64;height=64;took={raster:0,draw:0};context;ratio=1;raster;image;pixels;ground;textWidths=new Map;resize(e,t,n){
this.width=Math.max(224,Math.floor(e)),this.height=Math.max(71,Math.floor(t)),this.ratio=n,this.canvas.width=this.width*n,this.canvas.height=this.height*n;let s=Math.
floor((this.width-160)*n),o=Math.floor((this.height-39)*n);this.image=new ImageData(s,o),this.pixels=new Uint32Array(this.image.data.buffer),this.raster=new oe(
this.events,s),this.ground=new Uint32Array(s),this.place()}place(){this.layout=new se(this.events,this.height-39)}x(e){return 160+(e-this.time.start)/this.time.
span*(this.width-160)}timeAt(e){return this.time.start+(e-160)/(this.width-160)*this.time.span}screenY(e){return 39+e.y-(e.y<this.layout.pinned?0:this.scroll)}box(e){
let t=this.layout.of(this.events.laneOf(e));if(!t)return null;let n=this.x(this.events.start[e]);return{x:n,right:Math.max(this.x(this.events.end[e]),n+2),y:this.
screenY(t),height:t.height-(t.thin?0:1),row:t}}rowAt(e){let{rows:t,pinned:n}=this.layout,s=e<39+n;return t.find(o=>o.y<n===s&&e>=this.screenY(o)&&e<this.screenY(
o)+Math.max(o.height,o.toggles?17:0))}eventAt(e,t){let n=e<160||t<39?void 0:this.rowAt(t),s=n?.lane;if(!s?.ready||t>=this.screenY(n)+n.height)return-1;let{events:o}=this,
i=this.time.span/(this.width-160),c=this.timeAt(e),a=o.after(s,c-i);if(a>=s.beyond||o.start[a]>c+i*1.5)return-1;let l=o.leap(a,s.beyond,c+i);return l-a<=1||o.start[a]<=
c&&o.end[a]>c&&o.duration(a)>i*2?a:o.longest(a,l)}draw(e,t,n,s){let o=performance.now(),{layout:i,context:c,ratio:a}=this;this.scroll=Math.max(0,Math.min(this.scroll,
i.height-(this.height-39)+8));let l=wn(this.time.span,(this.width-160)/vn),u=[];this.background(e,l);let{pinned:h}=i;for(let m of i.rows)m.y>=h&&this.lane(m,h,n,
s,u);for(let m of i.rows)m.y<h&&this.lane(m,0,n,s,u);c.setTransform(a,0,0,a,0,0),c.putImageData(this.image,Math.round(160*a),Math.round(39*a)),this.took.raster=
performance.now()-o,this.labels(u,e,t,s),this.ruler(e,l),this.names(e),this.took.draw=performance.now()-o}background(e,t){let{ground:n,pixels:s,time:o}=this,i=n.
length,c=this.image.height,a=i/o.span;n.fill(e.pixels.paper);for(let l=Math.ceil(o.start/t)*t;l<o.end;l+=t)n[Math.min(i-1,Math.floor((l-o.start)*a))]=e.pixels.grid;
for(let l of this.events.head.steps)for(let u of[l.start_ns,l.end_ns])u>o.start&&u<o.end&&(n[Math.floor((u-o.start)*a)]=e.pixels.rule);s.set(n,0);for(let l=1;l<
c;l*=2)s.copyWithin(l*i,0,Math.min(l,c-l)*i)}lane(e,t,n,s,o){if(!e.lane?.ready)return;let{ratio:i,raster:c,pixels:a}=this,l=c.width,u=this.image.height,h=this.screenY(
e)-39;if(h+e.height<=t||h>=this.height-39)return;c.line.set(this.ground);let m=bn*i,p=e.thin?null:(y,f,k)=>{k-f>m&&o.push({i:y,left:f/i,right:k/i,y:h,floor:t})};
if(!c.draw(e.lane,this.time.start,l/this.time.span,n,s,p))return;let g=Math.max(Math.round(t*i),Math.round(h*i)),b=Math.min(u,Math.round((h+e.height-(e.thin?0:1))*
i));for(let y=g;y<b;y++)a.set(c.line,y*l)}fitted(e,t){let n=this.textWidths.get(e);if(n===void 0&&this.textWidths.set(e,n=this.context.measureText(e).width),n<=
t)return e;let s=Math.floor(e.length*(t-8)/n);return s<2?"":`${e.slice(0,s)}…`}labels(e,t,n,s){let{context:o,events:i}=this;o.font=`11px ${Y}`,o.textBaseline=
"middle",o.textAlign="left";let c=a=>s&&!s.names[a]?t.css.dim:n.darkInk[a]?"#14181d":"#fff";for(let a of["#14181d","#fff",t.css.dim]){o.fillStyle=a;for(let{i:l,
left:u,right:h,y:m,floor:p}of e){if(c(i.name[l])!==a||m+4<p)continue;let g=this.fitted(i.label(l),h-u-8);g&&o.fillText(g,160+u+4,39+m+17/2)}}}ruler(e,t){let{context:n,
time:s,width:o}=this,{steps:i}=this.events.head;n.fillStyle=e.css.paper,n.fillRect(0,0,o,39),n.fillStyle=e.css.dim;let[c,a]=s.end>=1e9?["s",1e9]:s.end>=1e6?["ms",
1e6]:["µs",1e3],l=Math.max(0,-Math.floor(Math.log10(t/a)+1e-9));for(let u=Math.ceil(s.start/t)*t;u<s.end;u+=t){let h=this.x(u);n.fillRect(Math.floor(h),16,1,6),
n.fillText(`${(u/a).toFixed(l)} ${c}`,h+4,22/2+1)}n.save(),n.beginPath(),n.rect(160,22,o-160,17),n.clip(),i.forEach((u,h)=>{let m=this.x(u.start_ns),p=this.x(u.
end_ns);if(p<160||m>o)return;n.fillStyle=e.css.band,n.fillRect(m,22,Math.max(1,p-m-1),14);let g=Math.max(m,160),b=this.fitted(`step ${h}  ${E(u.end_ns-u.start_ns)}`,
Math.min(p,o)-g-10);n.fillStyle=e.css.dim,b&&n.fillText(b,g+5,22+17/2-1)}),n.restore()}names(e){let{context:t,layout:n,height:s}=this,{rows:o,pinned:i}=n;t.fillStyle=
e.css.paper,t.fillRect(0,39,160,s),t.save(),t.beginPath(),t.rect(0,39+i,160,s),t.clip();for(let c of o)c.y>=i&&this.rowName(c,e);t.restore();for(let c of o)c.y<
i&&this.rowName(c,e);t.fillStyle=e.css.rule,t.fillRect(159,0,1,s),t.fillRect(0,38,this.width,1),i&&t.fillRect(0,39+i-1,this.width,1),t.fillStyle=e.css.dim,t.font=
`11px ${Y}`,this.events.head.steps.length&&t.fillText("steps",10,22+17/2-1)}rowName(e,t){let{context:n}=this,s=this.screenY(e);s>this.height||s+22<39||(e.title!==
void 0?(n.fillStyle=t.css.ink,n.font=`600 11px ${Y}`,n.fillText(this.fitted(e.title,142),10,s+22/2+2)):e.label&&(n.fillStyle=t.css.dim,n.font=`11px ${Y}`,n.fillText(
this.fitted(e.label,130),22,s+17/2),e.toggles&&n.fillText(e.toggles.open?"▾":"▸",10,s+17/2)))}};function wn(r,e){let t=r/Math.max(2,e),n=10**Math.floor(Math.
log10(t)),s=t/n;return n*(s>5?10:s>2?5:s>1?2:1)}function xn(r){let e=Uint8Array.fromBase64;if(e)return e.call(Uint8Array,r);let t=atob(r),n=new Uint8Array(t.length);for(let s=0;s<t.length;s++)n[s]=t.charCodeAt(
s);return n}async function kn(r){let e=new Blob([r]).stream().pipeThrough(new DecompressionStream("deflate-raw"));return new Uint8Array(await new Response(e).arrayBuffer())}
async function ye(r){let e=j(r),t=e.textContent??"";return e.remove(),kn(xn(t))}async function bt(r){return JSON.parse(new TextDecoder().decode(await ye(r)))}function Oe(r,e,t,n,s){
let o=r[e++]??0;for(let i=0;i<t;i++)n[s+i]=r[e+i];for(let i=1,c=256;i<o;i++,c*=256){let a=e+i*t;for(let l=0;l<t;l++)n[s+l]+=r[a+l]*c}return e+o*t}var He=r=>r%2?
-(r+1)/2:r/2;var U=64,Mn=64,v=-1,be=class{constructor(e){this.head=e;let t=e.events;this.start=new Float64Array(t),this.end=new Float64Array(t),this.sum=new Float64Array(t+1),
this.name=e.names.length<65536?new Uint16Array(t):new Uint32Array(t),this.argument=new Uint32Array(t),this.link=new Int32Array(t),this.counts=new Uint32Array(e.
names.length),this.longestOf=new Uint32Array(Math.ceil(t/U));let n=0;this.groups=e.tracks.map(s=>{let o=[],i={track:s,lanes:o,open:s.kind!=="python"};return s.lanes.
forEach((c,a)=>o.push({group:i,depth:a,first:n,beyond:n+=c,ready:!1})),i}),this.lanes=this.groups.flatMap(s=>s.lanes)}head;start;end;sum;name;argument;link;counts;groups;lanes;longestOf;read(e,t,n,s){
for(let o=n;o<s;o++)t=this.readPart(e,t,this.lanes.filter(i=>i.group.track.part===o))}readPart(e,t,n){let{start:s,end:o,sum:i,name:c,argument:a,link:l,counts:u}=this,
h=n[0]?.first??0,m=n[n.length-1]?.beyond??0,p=m-h;for(let y of[s,o,c,a])t=Oe(e,t,p,y,h);let g=new Float64Array(p);t=Oe(e,t,p,g,0);for(let y=0,f=v;y<p;y++)l[h+y]=
f+=He(g[y]);let b=i[h]??0;for(let y of n){let f=0;for(let k=y.first;k<y.beyond;k++){let w=o[k];s[k]=f+=He(s[k]),o[k]=f+=w,i[k+1]=b+=w,u[c[k]]++}y.ready=!0}for(let y=Math.
floor(h/U);y*U<m;y++){let f=Math.max(y*U,h);for(let k=f+1,w=Math.min(m,(y+1)*U);k<w;k++)this.duration(k)>this.duration(f)&&(f=k);this.longestOf[y]=f}return t}duration(e){
return this.end[e]-this.start[e]}text(e){return this.head.names[this.name[e]].text}label(e){let t=this.head.names[this.name[e]];return t.short||t.text}after(e,t){
let n=e.first,s=e.beyond;for(;n<s;){let o=n+s>>>1;this.end[o]>t?s=o:n=o+1}return n}leap(e,t,n){let{start:s}=this,o=1,i=e;for(;i+o<t&&s[i+o]<n;)i+=o,o*=2;let c=Math.
min(t,i+o);for(i++;i<c;){let a=i+c>>>1;s[a]<n?i=a+1:c=a}return i}longest(e,t){let n=e,s=this.duration(e),o=l=>{let u=this.duration(l);u>s&&(s=u,n=l)},i=Math.ceil(
e/U),c=Math.floor(t/U);if(c<=i){for(let l=e+1;l<t;l++)o(l);return n}for(let l=e+1;l<i*U;l++)o(l);let a=Math.max(1,Math.floor((c-i)/Mn));for(let l=i;l<c;l+=a)o(this.
longestOf[l]);for(let l=c*U;l<t;l++)o(l);return n}laneOf(e){let t=0,n=this.lanes.length-1;for(;t<n;){let s=t+n+1>>1;this.lanes[s].first<=e?t=s:n=s-1}for(;this.lanes[t].
beyond<=e;)t++;return this.lanes[t]}kind(e){return this.laneOf(e).group.track.kind}};var En=6,ve=class{constructor(e,t,n,s){this.events=e;this.relations=t;this.go=n;this.search=s}events;relations;go;search;list=d("dl");element(e){this.list.replaceChildren();
let{events:t}=this;switch(this.say("duration",E(t.duration(e))),this.say("begins",Tn(t.start[e])),t.kind(e)){case"gpu":this.operation(e);break;case"idle":this.gap(
e);break;case"api":this.call(e);break;case"ops":this.op(e);break;default:break}let n=t.head.names[t.name[e]];return n.short&&n.cause===null&&this.say("full name",
d("code",{},n.text)),d("div",{class:"body"},d("div",{class:"facts"},this.list),this.within(e))}same(e){let{events:t}=this,n=t.label(e);return d("p",{class:"quie\
t"},`${S(t.counts[t.name[e]])} of this name · `,d("button",{class:"go",onclick:()=>this.search(n)},"search"))}say(e,...t){let n=t.filter(s=>s!=null&&s!=="");n.
length&&this.list.append(d("dt",{},e),d("dd",{},...n))}link(e,t=""){return d("button",{class:"go",title:this.events.text(e),onclick:()=>this.go(e)},this.events.
label(e)+t)}operation(e){let{events:t,relations:n}=this,{head:s,start:o}=t,i=s.launches[t.argument[e]-1],c=n.callOf(e),a=s.names[t.name[e]].identity;if(i?.floor_ns!=
null&&this.say("roofline",`${H(i.floor_ns,t.duration(e))} of it reached: at least ${E(i.floor_ns)}, bound by ${i.bound??"?"}`),a!==null)for(let[u,h]of s.identities[a].
facts)this.say(u,h);i?.grid&&i.block&&(this.say("grid × block",`${i.grid.join(", ")} × ${i.block.join(", ")}`),this.say("threads",S([...i.grid,...i.block].reduce(
(u,h)=>u*h,1)))),i?.registers!=null&&this.say("registers, shared",`${i.registers} a thread, ${C(i.shared_bytes??0)} a block`),i?.moved_bytes!=null&&this.say("mo\
ved",`${C(i.moved_bytes)}${t.duration(e)?`, ${C(i.moved_bytes/t.duration(e)*1e9)}/s`:""}`),i?.source&&this.say("memory",`${i.source} → ${i.target??"?"}`),c!==
v&&(this.say("launched by",this.link(c,`  ${E(t.duration(c))}`)),this.say("launch→start",E(o[e]-o[c])));let l=n.opOf(e);l!==v&&(this.say("op",this.link(l)),this.
inputs(l))}inputs(e){let t=this.events.head.inputs[this.events.argument[e]-1];t&&(t.shapes&&this.say("shapes",d("code",{},t.shapes)),t.dtypes&&this.say("types",
d("code",{},t.dtypes)),t.module&&this.say("module",t.module))}call(e){let{events:t,relations:n}=this,s=n.launched(e),o=t.link[e];s.length&&(this.say("launches",
this.link(s[0]),s.length>1?` and ${S(s.length-1)} more`:null),this.say("launch→start",E(t.start[s[0]]-t.start[e]))),o!==v&&(this.say("op",this.link(o)),this.inputs(
o))}op(e){let{events:t,relations:n}=this,s=t.link[e];this.inputs(e);let o=n.workOf(e);if(o.length){let i=o.reduce((c,a)=>c+t.duration(a),0);this.say("on the GPU",
this.link(o[0]),o.length>1?` and ${S(o.length-1)} more, ${E(i)} in all`:null)}if(s!==v)this.say("backward of",this.link(s));else{let i=n.backwardOf(e);i.length&&
this.say("differentiated by",this.link(i[0]))}}gap(e){let{events:t}=this,n=t.laneOf(e),{start:s,end:o,link:i}=t,c=e,a=e;for(;c>n.first&&i[c-1]===i[e]&&s[c]===o[c-
1];)c--;for(;a+1<n.beyond&&i[a+1]===i[e]&&o[a]===s[a+1];)a++;let l=[];for(let u=c;u<=a;u++)l.push(`${t.label(u)} ${E(t.duration(u))}`);this.say("whole gap",`${E(
o[a]-s[c])}: ${l.join(", ")}`),i[e]!==v&&this.say("ended by",this.link(i[e]))}within(e){let{events:t,relations:n}=this,s=t.laneOf(e),{kind:o}=s.group.track,i=d(
"div",{class:"chain"}),c=n.callOf(e),a=s.group.track.thread!==null?e:c!==v?c:o==="gpu"?n.opOf(e):v;if(a===v)return i;let{thread:l}=t.laneOf(a).group.track,u=t.start[a],
h=n.around(n.group("python",l),u,o==="python"?s.depth:1/0),m=o==="python"?[]:n.around(n.group("ranges",l),u,o==="ranges"?s.depth:1/0),p=o==="python"||o==="range\
s"?[]:n.around(n.group("ops",l),u,o==="ops"?s.depth:1/0),g=[...m,...h.slice(-En),...p].filter(b=>b!==e);return g.length&&i.append(d("h3",{},"within"),...g.map(b=>this.
link(b,`  ${E(t.duration(b))}`))),i}},Tn=r=>`${(r/1e6).toFixed(3)} ms`;var Ln=[[["W","S"],"zoom in, out (also Ctrl and wheel, pinch; wheel alone once the timeline has the focus)"],[["A","D"],"pan (also drag, Shift and wheel)"],[["←",
"→"],"previous, next event of the row; without a selection, pan"],[["↑","↓"],"out to the caller, in to the callee; without a selection, scroll"],[["Enter"],
"select an event in the middle of the view"],[["F","0"],"fit the selection, the whole trace"],[["L"],"follow the link: kernel ↔ launch ↔ op, backward ↔ forward"],
[["G"],"next, largest gap of the cause that is searched for"],[["R"],"select the visible range (also Shift and drag, or drag on the ruler)"],[["P"],"fold or unf\
old Python"],[["/","N","Shift+N"],"search, next, previous match"],[["Esc"],"clear"]];function vt(r){let e=d("input",{type:"search",placeholder:"Search names   /",
spellcheck:"false",autocomplete:"off","aria-label":"Search names"}),t=d("button",{type:"button","aria-label":"Previous match",disabled:!0},"↑"),n=d("button",{
type:"button","aria-label":"Next match",disabled:!0},"↓"),s=d("output",{"aria-live":"polite"}),o=d("output"),i=d("button",{type:"button",title:"Whole trace (0\
)"},"Whole trace"),c=d("button",{type:"button","aria-label":"Keys",title:"Keys (?)"},"?"),a=d("ul",{class:"legend","aria-label":"Causes of idle time"}),l=d("can\
vas",{class:"map",role:"img","aria-label":"The whole trace; drag to move the view"}),u=d("canvas",{class:"view",tabindex:0,role:"application","aria-label":"Time\
line. W and S zoom, A and D pan, Enter selects, arrow keys move between events, slash searches, question mark lists the keys."}),h=d("canvas",{class:"over","ari\
a-hidden":"true"}),m=d("div",{class:"tip",role:"tooltip",hidden:!0}),p=d("div",{class:"stage"},u,h,m),g=d("aside",{class:"event","aria-label":"Selection","aria-\
live":"polite",hidden:!0}),b=d("dialog",{"aria-label":"Keys"},d("h2",{},"Keys"),d("dl",{},...Ln.flatMap(([f,k])=>[d("dt",{},...f.flatMap(w=>[d("kbd",{},w)," "])),
d("dd",{},k)])),d("form",{method:"dialog"},d("button",{autofocus:!0},"Close"))),y=d("div",{class:"tools",role:"toolbar","aria-label":"Timeline tools"},e,t,n,s,d(
"span",{class:"room"}),o,i,c);return r.replaceChildren(d("h2",{},"Timeline"),a,y,l,p,g,b),{find:e,previous:t,next:n,found:s,span:o,whole:i,help:c,legend:a,map:l,
stage:p,view:u,over:h,tip:m,panel:g,keys:b}}var An=4,wt=240,$n=60,_n={w:[.2,-.2],s:[-.25,.25],a:[-.2,-.2],d:[.2,.2]};function xt(r){Rn(r),Cn(r),On(r);let{find:e,next:t,previous:n,whole:s,help:o,keys:i}=r.
parts;e.addEventListener("input",()=>r.seek(e.value)),t.addEventListener("click",()=>r.next(1)),n.addEventListener("click",()=>r.next(-1)),s.addEventListener("c\
lick",()=>r.time.glide(0,r.time.length)),o.addEventListener("click",()=>i.showModal())}function Sn(r,e){let{events:t,picture:n,time:s,relations:o}=r,{tip:i,view:c}=r.
parts,a=n.eventAt(e.offsetX,e.offsetY);if(a!==r.hovered&&(r.hovered=a,r.drawOver()),c.style.cursor=e.offsetX<160?"default":e.offsetY<39?"col-resize":a!==v?"poin\
ter":"grab",i.hidden=a===v,a===v)return;let l=s.span/(n.width-160),u=t.leap(a,t.laneOf(a).beyond,t.start[a]+l)-a-1,h=o.opOf(a);i.replaceChildren(d("b",{},t.label(
a)),d("span",{},E(t.duration(a)))),t.kind(a)==="gpu"&&h!==v&&i.append(d("span",{},t.text(h))),t.kind(a)==="idle"&&t.link[a]!==v&&i.append(d("span",{},`before ${t.
label(t.link[a])}`)),u>0&&t.duration(a)<l*2&&i.append(d("em",{},`${S(u+1)} events in this column`));let{offsetWidth:m,offsetHeight:p}=i,g=e.offsetY+18;i.style.transform=
`translate(${Math.min(e.offsetX+14,n.width-m-6)}px, ${g+p>n.height?e.offsetY-p-10:g}px)`}function Rn(r){let{picture:e,time:t,parts:{view:n,tip:s}}=r,o=new Map,i=null;
n.addEventListener("pointerdown",a=>{n.setPointerCapture(a.pointerId),o.set(a.pointerId,a),t.stop();let l=a.offsetX>=160&&(a.shiftKey||a.offsetY<39);i={x:a.offsetX,
y:a.offsetY,start:t.start,end:t.end,scroll:e.scroll,selects:l,moved:!1}}),n.addEventListener("pointermove",a=>{let l=o.get(a.pointerId);if(!l||!i){Sn(r,a);return}
if(o.set(a.pointerId,a),o.size===2){let p=[...o.values()].find(y=>y.pointerId!==a.pointerId),g=Math.abs(l.offsetX-p.offsetX),b=Math.abs(a.offsetX-p.offsetX);g>8&&
b>8&&t.zoom(g/b,e.timeAt((a.offsetX+p.offsetX)/2)),i.moved=!0;return}let u=a.offsetX-i.x,h=a.offsetY-i.y;if(!i.moved&&Math.hypot(u,h)<An)return;if(i.moved=!0,s.
hidden=!0,i.selects){r.selectRange([e.timeAt(Math.max(160,i.x)),e.timeAt(Math.max(160,a.offsetX))]);return}n.style.cursor="grabbing";let m=-u/(e.width-160)*(i.end-
i.start);e.scroll=i.scroll-h,t.move(i.start+m,i.end+m)});let c=a=>{o.delete(a.pointerId),i&&!i.moved&&a.type==="pointerup"&&Pn(r,a),o.size||(i=null)};n.addEventListener(
"pointerup",c),n.addEventListener("pointercancel",c),n.addEventListener("pointerleave",()=>{s.hidden=!0,r.hovered=v,r.drawOver()}),n.addEventListener("dblclick",
a=>{let l=e.eventAt(a.offsetX,a.offsetY);l!==v&&r.fit(l)})}function Pn(r,e){let{picture:t}=r;if(e.offsetX>=160){r.selectRange(null),r.choose(t.eventAt(e.offsetX,
e.offsetY));return}let n=t.rowAt(e.offsetY)?.toggles;n&&r.fold(n)}function Cn(r){let{picture:e,time:t,parts:{view:n,tip:s}}=r;n.addEventListener("wheel",o=>{let i=o.
shiftKey||Math.abs(o.deltaX)>Math.abs(o.deltaY);if(!o.ctrlKey&&!i&&document.activeElement!==n)return;o.preventDefault(),s.hidden=!0,t.stop();let c=o.deltaMode===
WheelEvent.DOM_DELTA_LINE?16:1,a=o.deltaX*c,l=o.deltaY*c;o.offsetX<160?(e.scroll+=l,r.redraw()):i?t.pan((a||l)/(e.width-160)*t.span):t.zoom(Math.exp(Math.max(-wt,
Math.min(wt,l))*(o.ctrlKey?.01:.0022)),e.timeAt(o.offsetX))},{passive:!1})}function On(r){let{find:e,view:t,keys:n,panel:s}=r.parts;e.addEventListener("keydown",
o=>{o.key==="Enter"&&(r.next(o.shiftKey?-1:1),o.preventDefault()),o.key==="Escape"&&(e.value="",r.seek(""),t.focus()),o.stopPropagation()}),addEventListener("ke\
ydown",o=>{if(o.metaKey||o.ctrlKey||o.altKey||n.open)return;let i=o.target;i!==t&&i!==document.body&&!s.contains(i)||i.tagName==="BUTTON"&&(o.key==="Enter"||o.key===
" ")||i===document.body&&o.key.startsWith("Arrow")||Hn(r,o)&&o.preventDefault()})}function Hn(r,e){let{time:t,picture:n,chosen:s,events:o}=r,i=e.key.length===1?
e.key.toLowerCase():e.key,c=_n[i];if(c)return t.glide(t.start+c[0]*t.span,t.end+c[1]*t.span),!0;switch(i){case"?":return r.parts.keys.showModal(),!0;case"/":return r.
parts.find.focus(),r.parts.find.select(),!0;case"n":return r.next(e.shiftKey?-1:1),!0;case"0":return t.glide(0,t.length),!0;case"f":return s!==v&&r.fit(s),!0;case"\
l":return r.followLink(),!0;case"g":return r.nextGap(),!0;case"p":return r.toggle("python"),!0;case"r":return r.selectRange([t.start,t.end]),!0;case"Enter":return s===
v&&r.choose(In(r)),!0;case"Escape":return r.selectRange(null),s!==v?r.choose(v):(r.parts.find.value="",r.seek("")),!0;case"ArrowLeft":case"ArrowRight":{let a=i===
"ArrowRight"?1:-1;if(s===v)return t.glide(t.start+.15*a*t.span,t.end+.15*a*t.span),!0;let l=o.laneOf(s),u=s+a;return u>=l.first&&u<l.beyond&&r.choose(u,!0),!0}case"\
ArrowUp":case"ArrowDown":{let a=i==="ArrowDown"?1:-1;if(s===v)return n.scroll+=$n*a,r.redraw(),!0;let l=r.relations.neighbour(s,a);return l!==v&&r.choose(l,!0),
!0}default:return!1}}function In(r){let{events:e,time:t}=r,n=(t.start+t.end)/2;for(let s of e.lanes.filter(o=>o.ready).sort((o,i)=>+(i.group.track.kind==="gpu")-
+(o.group.track.kind==="gpu"))){let o=e.after(s,n);if(o<s.beyond&&e.start[o]<t.end)return o}return v}var Nn=4,Ie=["matmul","comm","copy","memset"],we=class{constructor(e,t,n){this.canvas=e;this.events=t;this.time=n;this.context=e.getContext("2d");let s=o=>{let i=(o.
offsetX-160)/(e.clientWidth-160)*n.length,c=n.span/2;n.stop(),n.move(i-c,i+c)};e.addEventListener("pointerdown",o=>{e.setPointerCapture(o.pointerId),s(o)}),e.addEventListener(
"pointermove",o=>{o.buttons&&s(o)})}canvas;events;time;context;image=null;ratio=1;resize(e){this.ratio=e,this.canvas.width=this.canvas.clientWidth*e,this.canvas.
height=this.canvas.clientHeight*e,this.image=null}forget(){this.image=null}draw(e){let{context:t,canvas:n,ratio:s,time:o}=this;if(n.width<=160*s)return;this.image??=
this.sketch(e),t.putImageData(this.image,0,0),t.setTransform(s,0,0,s,0,0);let i=n.clientWidth-160,c=n.clientHeight,a=160+o.start/o.length*i,l=160+o.end/o.length*
i;t.fillStyle=e.css.dim,t.font=`11px ${Y}`,t.textBaseline="middle",t.fillText("whole trace",10,c/2),t.fillStyle=`${e.css.paper}b8`,t.fillRect(160,0,a-160,c),t.fillRect(
l,0,160+i-l,c),t.strokeStyle=e.css.accent,t.lineWidth=1.5,t.strokeRect(a+.75,1.25,Math.max(2,l-a-1.5),c-2.5)}sketch(e){let{events:t,canvas:n,ratio:s}=this,{head:o}=t,
{width:i,height:c}=n,a=Math.round(160*s),l=Math.max(1,i-a),u=this.busiestDevice(),h=Ie.map(()=>new Float32Array(l)),m=o.causes.map(()=>new Float32Array(l));for(let w of t.
lanes)w.group.track.device===u&&(w.group.track.kind==="gpu"&&this.spread(w,l,L=>h[Math.max(0,Ie.indexOf(o.names[t.name[L]].kind))]),w.group.track.kind==="idle"&&
this.spread(w,l,L=>m[Math.max(0,o.causes.indexOf(o.names[t.name[L]].cause??""))]));let p=new ImageData(i,c),g=new Uint32Array(p.data.buffer),b=Math.round(Nn*s),
y=c-2*b,f=Ie.map(w=>X(me(w,e.dark))),k=o.causes.map(w=>X(Pe(Ce(w),e.paper,.8)));g.fill(e.pixels.paper);for(let w=0;w<l;w++){let L=c-b,x=1,A=($,P)=>{let O=Math.max(
b,L-$*y);for(let R=Math.round(L)-1;R>=Math.round(O);R--)g[R*i+a+w]=P;L=O};h.forEach(($,P)=>{let O=Math.min(x,$[w]);A(O,f[P]),x-=O}),m.forEach(($,P)=>A($[w],k[P]))}
return p}busiestDevice(){let e=new Map;for(let{group:t,first:n,beyond:s}of this.events.lanes){let{device:o,kind:i}=t.track;i==="gpu"&&o!==null&&e.set(o,(e.get(o)??
0)+this.events.sum[s]-this.events.sum[n])}return[...e].sort((t,n)=>n[1]-t[1])[0]?.[0]??null}spread(e,t,n){let{start:s,end:o}=this.events,i=t/this.time.length;for(let c=e.
first;c<e.beyond;c++){let a=s[c]*i,l=o[c]*i,u=n(c);for(let h=Math.floor(a);h<l&&h<t;h++)u[h]+=Math.min(l,h+1)-Math.max(a,h)}}};var xe=class{constructor(e,t){this.canvas=e;this.picture=t;this.context=e.getContext("2d")}canvas;picture;context;ratio=1;resize(e){this.ratio=e,this.canvas.width=
this.picture.width*e,this.canvas.height=this.picture.height*e}draw(e,t){let{context:n,picture:s,ratio:o}=this;n.setTransform(o,0,0,o,0,0),n.clearRect(0,0,s.width,
s.height),n.save(),n.beginPath(),n.rect(160,0,s.width-160,s.height),n.clip(),e.range&&this.range(e.range,t),n.beginPath(),n.rect(160,39,s.width-160,s.height),n.
clip();for(let i of e.family)this.frame(i,t.css.dim,1.5);for(let[i,c]of e.arrows)this.arrow(i,c,t);e.chosen>=0&&this.frame(e.chosen,t.css.accent,2),e.hovered>=0&&
e.hovered!==e.chosen&&this.frame(e.hovered,t.css.ink,1),n.restore()}range([e,t],n){let{context:s,picture:o}=this,i=o.x(e),c=o.x(t);s.globalAlpha=.12,s.fillStyle=
n.css.accent,s.fillRect(i,0,c-i,o.height),s.globalAlpha=1,s.fillRect(i,0,1,o.height),s.fillRect(c-1,0,1,o.height)}frame(e,t,n){let{context:s,picture:o}=this,i=o.
box(e),{pinned:c}=o.layout;if(!i||i.row.y>=c&&i.y<39+c-8)return;let a=Math.max(156,i.x),l=Math.min(o.width+4,i.right);s.strokeStyle=t,s.lineWidth=n,s.strokeRect(
a-.5,i.y-.5,Math.max(2,l-a),i.height+1)}arrow(e,t,n){let{context:s,picture:o}=this,i=o.box(e),c=o.box(t);if(!i||!c)return;let a=i.y>c.y,l=i.x,u=c.x+1,h=a?1:-1,m=Math.
max(39+o.layout.pinned-4,a?i.y:i.y+i.height),p=a?c.y+c.height:c.y,g=(p-m)*.55||20;for(let[b,y]of[[n.css.paper,4],[n.css.accent,1.75]])s.strokeStyle=s.fillStyle=
b,s.lineWidth=y,s.beginPath(),s.moveTo(l,m),s.bezierCurveTo(l,m+g,u,p-g,u,p+5*h),s.stroke();s.beginPath(),s.arc(l,m,3,0,7),s.fill(),s.beginPath(),s.moveTo(u,p),
s.lineTo(u-4.5,p+8*h),s.lineTo(u+4.5,p+8*h),s.fill()}};var Ne=24,ke=class{constructor(e){this.events=e}events;linkedTo(e,t){let n=[],{link:s}=this.events;for(let o of this.events.lanes)if(o.group.track.kind===e)for(let i=o.
first;i<o.beyond;i++)t(s[i])&&n.push(i);return n}launched(e){return this.linkedTo("gpu",t=>t===e)}backwardOf(e){return this.linkedTo("ops",t=>t===e)}callsOf(e){
let{events:t}=this,{start:n,end:s}=t,o=t.laneOf(e).group.track.thread,i=[];for(let c of t.lanes)if(!(c.group.track.kind!=="api"||c.group.track.thread!==o))for(let a=t.
after(c,n[e]);a<c.beyond&&n[a]<s[e];a++)n[a]>=n[e]&&i.push(a);return i}workOf(e){let t=new Set(this.callsOf(e));return this.linkedTo("gpu",n=>n===e||t.has(n))}callOf(e){
let{events:t}=this,n=t.link[e];return t.kind(e)==="gpu"&&n!==v&&t.kind(n)==="api"?n:v}opOf(e){let{events:t}=this,n=t.kind(e);if(n==="ops")return e;if(n==="api")
return t.link[e];if(n!=="gpu")return v;let s=this.callOf(e);return s!==v?t.link[s]:t.link[e]}arrows(e){let{events:t}=this,n=t.link[e];switch(t.kind(e)){case"gpu":case"\
syncs":return n!==v?[[n,e]]:[];case"idle":return n!==v&&t.link[n]!==v?[[t.link[n],n]]:[];case"api":return this.launched(e).slice(0,Ne).map(s=>[e,s]);case"ops":return[
...n!==v?[[n,e]]:this.backwardOf(e).slice(0,Ne).map(o=>[e,o]),...this.workOf(e).slice(0,Ne).map(o=>[t.link[o],o])];default:return[]}}family(e){let{events:t}=this,
n=t.link[e],s=[n];return n!==v&&s.push(t.link[n]),t.kind(e)==="idle"&&n!==v&&t.link[n]!==v&&s.push(t.link[t.link[n]]),s.filter(o=>o!==v)}around(e,t,n=1/0){let s=[];
for(let o of e?.lanes??[]){if(o.depth>=n||!o.ready)continue;let i=this.events.after(o,t);i<o.beyond&&this.events.start[i]<=t&&s.push(i)}return s}group(e,t){return this.
events.groups.find(n=>n.track.kind===e&&n.track.thread===t)}neighbour(e,t){let{events:n}=this,s=n.laneOf(e),o=s.group.lanes[s.depth+t];if(!o)return v;let i=t<0?
n.after(o,n.start[e]):Un(n,o,n.start[e]);return i<o.beyond&&n.start[i]<n.end[e]&&n.end[i]>n.start[e]?i:v}};function Un(r,e,t){let n=e.first,s=e.beyond;for(;n<s;){
let o=n+s>>>1;r.start[o]<t?n=o+1:s=o}return n}var Me=class{constructor(e){this.events=e}events;matches=null;total=0;seek(e){let t=e.trim().toLowerCase();this.choose(t?n=>n.text.toLowerCase().includes(t)||n.
short.toLowerCase().includes(t):null)}seekNames(e){let t=new Set(e);this.choose((n,s)=>t.has(s))}choose(e){if(this.matches=null,this.total=0,!e)return;let{events:t}=this,
n=Uint8Array.from(t.head.names,(i,c)=>e(i,c)?1:0),s=new Uint32Array(t.start.length+1),{name:o}=t;for(let i=0,c=0;i<o.length;i++)s[i+1]=c+=n[o[i]];n.forEach((i,c)=>{
i&&(this.total+=t.counts[c])}),this.matches={names:n,before:s}}next(e,t,n){if(!this.matches||!this.total)return v;let s=this.step(e,t,t!==v?this.events.start[t]:
n);return s!==v?s:this.step(e,v,e>0?-1/0:1/0)}step(e,t,n){let{events:s}=this,{start:o,name:i}=s,{names:c}=this.matches,a=(u,h)=>(o[u]-o[h]||u-h)*e>0,l=v;for(let u of s.
lanes){if(!u.ready)continue;let h=u.first,m=u.beyond;for(;h<m;){let p=h+m>>>1;o[p]<n||e<0&&o[p]===n&&p<t?h=p+1:m=p}for(let p=e>0?h:h-1;p>=u.first&&p<u.beyond&&!(l!==
v&&a(p,l));p+=e)if(c[i[p]]&&(t===v||a(p,t))){l=p;break}}return l}};var Ue=8,Dn=[["On the GPU",["gpu"]],["GPU idle",["idle"]],["API calls",["api"]],["Outermost ops",["ops"]]];function Gn(r,e,t,n){let s=new Map;for(let o of r.lanes){
let{kind:i}=o.group.track;if(!(!o.ready||!n.includes(i)||i==="ops"&&o.depth>0))for(let c=r.after(o,e);c<o.beyond&&r.start[c]<t;c++){let a=Math.min(t,r.end[c])-Math.
max(e,r.start[c]),l=s.get(r.name[c]);l?(l[0]++,l[1]+=a):s.set(r.name[c],[1,a])}}return[...s].map(([o,[i,c]])=>({name:o,count:i,time:c})).sort((o,i)=>i.time-o.time)}
function kt(r,e,t,n){let s=d("div",{class:"totals"});for(let[o,i]of Dn){let c=Gn(r,e,t,i),a=c.reduce((h,m)=>h+m.time,0);if(!c.length)continue;let l=c.slice(0,Ue).
map(h=>{let m=r.head.names[h.name],p=m.short||m.text;return d("tr",{},d("td",{class:"number"},E(h.time)),d("td",{class:"number"},H(h.time,t-e)),d("td",{class:"n\
umber"},S(h.count)),d("td",{},d("button",{class:"go",title:m.text,onclick:()=>n(p)},p)))}),u=c.length>Ue?d("p",{class:"quiet"},`and ${S(c.length-Ue)} more names`):
"";s.append(d("div",{},d("h3",{},`${o}: ${E(a)}`),d("table",{},d("thead",{},d("tr",{},...["time","share","count","name"].map((h,m)=>d("th",{scope:"col",class:m<
3?"number":""},h)))),d("tbody",{},...l)),u))}return s}var Ee=class{constructor(e,t){this.length=e;this.changed=t;this.end=e}length;changed;start=0;end;gliding=0;get span(){return this.end-this.start}move(e,t){let{length:n}=this,
s=Math.min(n*1.02,Math.max(200,t-e)),o=t-e===s?e:(e+t-s)/2;this.start=Math.max(-.01*n,Math.min(o,(1+.01)*n-s)),this.end=this.start+s,this.changed()}pan(e){this.
move(this.start+e,this.end+e)}zoom(e,t=(this.start+this.end)/2){this.move(t-(t-this.start)*e,t+(this.end-t)*e)}stop(){this.gliding++}glide(e,t){let n=++this.gliding,
s=this.start,o=this.end,i=performance.now();if(matchMedia("(prefers-reduced-motion: reduce)").matches){this.move(e,t);return}let c=()=>{if(n!==this.gliding)return;
let a=Math.min(1,(performance.now()-i)/160),l=1-(1-a)**3;this.move(s+(e-s)*l,o+(t-o)*l),a<1&&requestAnimationFrame(c)};c()}};var Fn=400,Bn=160,Te=class{constructor(e,t,n,s){this.head=e;this.events=new be(e),this.events.read(t,n,0,e.early_parts),this.parts=vt(s),this.time=new Ee(Math.max(
1,e.length_ns),()=>this.redraw()),this.picture=new ge(this.parts.view,this.events,this.time),this.overlay=new xe(this.parts.over,this.picture),this.minimap=new we(
this.parts.map,this.events,this.time),this.relations=new ke(this.events),this.search_=new Me(this.events),this.details=new ve(this.events,this.relations,o=>this.
choose(o,!0),o=>this.search(o)),this.parts.map.hidden=!e.tracks.some(o=>o.device!==null),this.dress(),this.legend(),this.resize(),this.openAddress(),new ResizeObserver(
()=>this.resize()).observe(this.parts.stage),ut(()=>{this.dress(),this.redraw()}),addEventListener("hashchange",()=>this.openAddress()),xt(this)}head;events;time;picture;relations;search_;parts;chosen=v;hovered=v;range=null;overlay;minimap;details;look;paint;colours;pending=!1;writing=0;gaps=null;addRest(e){
let t=this.head.tracks.reduce((s,o)=>Math.max(s,o.part+1),0);this.events.read(e,0,this.head.early_parts,t),this.parts.find.value&&this.seek(this.parts.find.value);
let{event:n}=Re(location.hash);n!==void 0&&this.chosen===v&&this.openAddress(),this.chosen!==v&&this.choose(this.chosen),this.redraw()}goTo(e,t){let n=(t-e)*.05;
this.parts.stage.scrollIntoView({block:"nearest"}),this.time.glide(e-n,t+n)}search(e){this.parts.find.value=e,this.seek(e),this.parts.stage.scrollIntoView({block:"\
nearest"}),this.next(1)}showFinding(e){let t=this.head.spots.find(n=>n.finding===e);if(t){if(this.parts.stage.scrollIntoView({block:"center"}),!t.names.length){
this.throughGaps(t.cause);return}this.parts.find.value="",this.search_.seekNames(t.names),this.afterSearch(),this.next(1)}}redraw(){this.pending||(this.pending=
!0,requestAnimationFrame(()=>{this.pending=!1,this.draw()}))}draw(){this.picture.draw(this.look,this.paint,this.colours,this.search_.matches),this.minimap.draw(
this.look),this.drawOver(),this.parts.span.textContent=E(this.time.span),clearTimeout(this.writing),this.writing=setTimeout(()=>this.writeAddress(),Fn)}drawOver(){
let{chosen:e,hovered:t,range:n,relations:s}=this,o=e!==v;this.overlay.draw({chosen:e,hovered:t,range:n,family:o?s.family(e):[],arrows:o?this.arrows:[]},this.look)}arrows=[];dress(){
this.look=yt(),this.paint=gt(this.head.names,this.look.dark,this.look.paper),this.minimap.forget(),this.colourMatches()}colourMatches(){let{full:e,faded:t}=this.
paint,{matches:n}=this.search_;this.colours=n?e.map((s,o)=>n.names[o]?s:t[o]):e}resize(){let e=window.devicePixelRatio||1,t=this.parts.stage.getBoundingClientRect();
this.picture.resize(t.width,t.height,e),this.limitHeight(),this.overlay.resize(e),this.minimap.resize(e),this.draw()}limitHeight(){this.parts.stage.style.maxHeight=
`${Math.max(Bn,39+this.picture.layout.height+17)}px`}fold(e){e.open=!e.open,this.placed()}placed(){this.picture.place(),this.limitHeight(),this.redraw()}legend(){
for(let[e,t]of this.head.names.entries()){if(t.cause===null||!this.events.counts[e])continue;let{cause:n}=t,s=M("svg",{class:"swatch",viewBox:"0 0 1 1","aria-hi\
dden":"true"},M("rect",{class:`part ${n.replaceAll("_","-")} cause`,width:1,height:1}));this.parts.legend.append(d("li",{},d("button",{type:"button",class:"plai\
n",title:"Go through these gaps, the largest first",onclick:()=>this.throughGaps(n)},s,t.short||t.text)))}}throughGaps(e){let{events:t}=this,n=this.head.names.flatMap(
(o,i)=>o.cause===e?[i]:[]);this.parts.find.value=`idle: ${e.replaceAll("_"," ")}`,this.search_.seekNames(n);let s=[];for(let o of t.lanes)if(o.group.track.kind===
"idle")for(let i=o.first;i<o.beyond;i++)n.includes(t.name[i])&&s.push(i);s.sort((o,i)=>t.duration(i)-t.duration(o)),this.gaps={rows:s,at:-1},this.afterSearch(),
this.nextGap()}nextGap(){let{gaps:e}=this;e?.rows.length&&(e.at=(e.at+1)%e.rows.length,this.choose(e.rows[e.at],!0),this.parts.found.textContent=`gap ${S(e.at+1)}\
 of ${S(e.rows.length)}, the largest first: G for the next`)}seek(e){this.gaps=null,this.search_.seek(e),this.afterSearch()}afterSearch(){let{found:e,next:t,previous:n}=this.
parts,{matches:s,total:o}=this.search_;e.textContent=s?ee(o,"match","matches"):"",t.disabled=n.disabled=!o,this.colourMatches(),this.redraw()}next(e){let t=this.
search_.next(e,this.chosen,e>0?this.time.start:this.time.end);t!==v&&this.choose(t,!0)}choose(e,t=!1){let{panel:n}=this.parts,{events:s}=this;if(this.chosen=e,this.
arrows=e===v?[]:this.relations.arrows(e),n.hidden=e===v&&!this.range,e!==v){let o=this.head.names[s.name[e]],i=this.paint.full[s.name[e]],c=M("svg",{class:"swat\
ch",viewBox:"0 0 1 1","aria-hidden":"true"},M("rect",{width:1,height:1,fill:ft([i&255,i>>>8&255,i>>>16&255])}));this.show(d("h3",{},c,o.cause!==null?o.text:s.label(
e)),this.details.same(e),this.details.element(e)),t&&this.reveal(e)}else this.range&&this.describeRange();this.redraw()}selectRange(e){this.range=e&&[Math.max(0,
Math.min(...e)),Math.min(this.time.length,Math.max(...e))],this.range&&(this.chosen=v,this.arrows=[]),this.parts.panel.hidden=!this.range&&this.chosen===v,this.
range&&this.describeRange(),this.redraw()}describeRange(){let[e,t]=this.range,n=d("button",{type:"button",onclick:()=>this.time.glide(e,t)},"Zoom here");this.show(
d("h3",{},`Selected ${E(t-e)}`),n,kt(this.events,e,t,s=>this.search(s)))}show(e,t,n){let s=d("button",{type:"button",class:"close","aria-label":"Close",onclick:()=>{
this.selectRange(null),this.choose(v),this.parts.view.focus({preventScroll:!0})}},"×");this.parts.panel.replaceChildren(d("div",{class:"title"},e,t,s),n)}reveal(e){
let{events:t,time:n}=this,s=t.laneOf(e),o=t.duration(e),i=t.start[e];s.group.open||this.fold(s.group);let c=Math.max(o*8,4e4);o>n.span*.9||o/n.span<.004?n.glide(
Math.max(0,i-c),Math.min(n.length,i+o+c)):(i<n.start||i+o>n.end)&&n.glide(i+o/2-n.span/2,i+o/2+n.span/2),this.scrollTo([e,...this.relations.family(e)])}scrollTo(e){
let{picture:t}=this,{pinned:n}=t.layout,s=t.height-39-n,o=e.map(a=>t.layout.of(this.events.laneOf(a))).filter(a=>a!==void 0&&a.y>=n).map(a=>a.y);if(!o.length)return;
let i=Math.min(...o),c=Math.max(...o)+17;c-i>s&&(i=o[0],c=i+17),i-t.scroll<n?t.scroll=i-n-22:c-t.scroll>n+s&&(t.scroll=Math.min(i-n-22,c-n-s+6))}toggle(e){let t=this.
events.groups.filter(s=>s.track.kind===e),n=!t.some(s=>s.open);for(let s of t)s.open=n;this.placed()}fit(e){let t=this.events.duration(e)*.15+200;this.time.glide(
this.events.start[e]-t,this.events.end[e]+t)}followLink(){let{chosen:e,relations:t,events:n}=this;if(e===v)return;let s=n.link[e],o=s!==v?s:t.launched(e)[0]??(n.
kind(e)==="ops"?t.backwardOf(e)[0]??t.workOf(e)[0]:void 0);o!==void 0&&this.choose(o,!0)}openAddress(){let{at:e,event:t,range:n}=Re(location.hash);e&&e[1]>e[0]&&
this.time.move(e[0],e[1]),n&&this.selectRange(n),t!==void 0&&t<this.head.events&&this.events.laneOf(t).ready&&this.choose(t),(e||n||t!==void 0)&&this.parts.stage.
scrollIntoView({block:"center"})}writeAddress(){let{time:e,chosen:t,range:n}=this,s=e.start<=0&&e.end>=e.length,o=pt({...s?{}:{at:[e.start,e.end]},...t!==v?{event:t}:
{},...n?{range:n}:{}});if(!(!o&&!/^#(at|event|range)=/.test(location.hash)))try{history.replaceState(null,"",o?`#${o}`:location.href.split("#")[0])}catch{}}};var Mt={begin:performance.now()},Le=r=>{Mt[r]=performance.now()},Et=()=>new Promise(r=>requestAnimationFrame(()=>setTimeout(r)));function Tt(){let r=[...document.
querySelectorAll("main section[id]")].flatMap(e=>{let t=e.querySelector("h2")?.firstChild?.textContent??e.getAttribute("aria-label");return t&&e.childElementCount?
[d("a",{href:`#${e.id}`},t)]:[]});j("contents").replaceChildren(...r)}async function Kn(){let r=await ye("data-timeline");Le("inflated");let e=new DataView(r.buffer).
getUint32(0,!0),t=JSON.parse(new TextDecoder().decode(r.subarray(4,4+e))),n=new Te(t,r,4+e,j("timeline"));Le("drawn"),Tt();for(let s of document.querySelectorAll(
"[data-finding]")){let o=Number(s.dataset.finding);s.append(d("button",{type:"button",class:"jump",onclick:()=>n.showFinding(o)},"Show on the timeline"))}return Et().
then(()=>Le("painted")),n}async function Wn(r){await Et(),r.addRest(await ye("data-python"));let e=await bt("data-panels");for(let t of at){let n=e[t.name];if(!n)
continue;let s=d("div",{class:"body"});j("panels").append(d("section",{id:t.name,class:"section"},d("h2",{},t.title),s)),t.draw(n,s,r)}Tt(),Le("complete")}document.
querySelector("header")?.append(ht());var zn=new Promise(r=>document.addEventListener("DOMContentLoaded",()=>r()));Kn().then(async r=>{Object.assign(window,{warpline:{
marks:Mt,timeline:r}}),await zn,await Wn(r)});})();
